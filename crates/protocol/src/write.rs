//! Writing values without knowing how they look.

/// Values one after the other, appended to a buffer. A map's fields and a list's items are counted beforehand,
/// because CBOR says the number first.
pub(crate) trait Sink {
    /// Begins a map of so many fields.
    fn map(&mut self, fields: usize);
    /// Ends the innermost map.
    fn end_map(&mut self);
    /// Begins a list of so many items.
    fn list(&mut self, items: usize);
    /// Stands before each item of a list.
    fn item(&mut self);
    /// Ends the innermost list.
    fn end_list(&mut self);
    /// Stands before each field's value. Names need no escaping.
    fn key(&mut self, name: &'static str);
    fn integer(&mut self, value: u64);
    fn boolean(&mut self, value: bool);
    fn text(&mut self, value: &str);
    fn uuid(&mut self, value: &[u8; 16]);
    fn bytes(&mut self, value: &[u8]);

    fn integer_field(&mut self, name: &'static str, value: u64) {
        self.key(name);
        self.integer(value);
    }

    fn boolean_field(&mut self, name: &'static str, value: bool) {
        self.key(name);
        self.boolean(value);
    }

    fn text_field(&mut self, name: &'static str, value: &str) {
        self.key(name);
        self.text(value);
    }

    fn uuid_field(&mut self, name: &'static str, value: &[u8; 16]) {
        self.key(name);
        self.uuid(value);
    }

    fn bytes_field(&mut self, name: &'static str, value: &[u8]) {
        self.key(name);
        self.bytes(value);
    }

    fn empty_map(&mut self) {
        self.map(0);
        self.end_map();
    }
}
