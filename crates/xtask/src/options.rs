//! Command lines of the small kind: flags and `--name value` pairs.
//!
//! Owns reading them and refusing the unknown. Knows no command.

/// What remains of a command line.
pub struct Options {
    left: Vec<String>,
}

impl Options {
    /// Takes the arguments after the command.
    pub fn new(arguments: Vec<String>) -> Options {
        Options { left: arguments }
    }

    /// Whether `--name` is there; taken away.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.left.len();
        self.left.retain(|argument| argument != name);
        self.left.len() != before
    }

    /// Whether help is wanted.
    pub fn help(&mut self) -> bool {
        // Both forms are taken away.
        self.flag("--help") | self.flag("-h")
    }

    /// The values of every `--name value` or `--name=value`; taken away.
    pub fn values(&mut self, name: &str) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        let mut left = Vec::new();
        let mut arguments = std::mem::take(&mut self.left).into_iter();
        while let Some(argument) = arguments.next() {
            if argument == name {
                values.push(arguments.next().ok_or(format!("{name} needs a value"))?);
            } else if let Some(value) = argument.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
                values.push(value.to_owned());
            } else {
                left.push(argument);
            }
        }
        self.left = left;
        Ok(values)
    }

    /// The value of `--name`, which may be there once; taken away.
    pub fn value(&mut self, name: &str) -> Result<Option<String>, String> {
        let mut values = self.values(name)?;
        match values.len() {
            0 | 1 => Ok(values.pop()),
            _ => Err(format!("{name} is given twice")),
        }
    }

    /// Nothing may be left.
    pub fn finish(self) -> Result<(), String> {
        match self.left.first() {
            None => Ok(()),
            Some(unknown) => Err(format!("`{unknown}` is not understood; --help lists the options")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        Options::new(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn flags_and_values_are_taken_away_and_the_rest_is_refused() {
        let mut given = options("--trace --seed 7 --only=a --only b");
        assert!(given.flag("--trace"));
        assert!(!given.flag("--trace"));
        assert_eq!(given.value("--seed"), Ok(Some("7".to_owned())));
        assert_eq!(given.values("--only"), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(given.finish(), Ok(()));
        assert!(options("--sede 7").finish().unwrap_err().contains("--sede"));
    }

    #[test]
    fn a_missing_or_doubled_value_is_an_error() {
        assert!(options("--seed").value("--seed").is_err());
        assert!(options("--seed 1 --seed 2").value("--seed").is_err());
    }
}
