//! Latencies of a benchmark: all of them are kept, so that quantiles are exact.

use std::time::Duration;

/// A collection of latencies.
#[derive(Debug, Default, Clone)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    /// Notes one. Microseconds are kept; more than an hour counts as an hour.
    pub fn record(&mut self, latency: Duration) {
        self.0.push(latency.as_micros().min(3_600_000_000) as u32);
    }

    /// Takes those of another collection.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.extend_from_slice(&other.0);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The latency that this share of them do not exceed (nearest rank); zero when there are none.
    pub fn quantile(&mut self, share: f64) -> Duration {
        if self.0.is_empty() {
            return Duration::ZERO;
        }
        let rank = ((self.0.len() as f64 * share).ceil() as usize).clamp(1, self.0.len()) - 1;
        let (_, value, _) = self.0.select_nth_unstable(rank);
        Duration::from_micros(u64::from(*value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut latencies = Latencies::default();
        for micros in [5, 1, 4, 2, 3, 10, 6, 7, 9, 8] {
            latencies.record(Duration::from_micros(micros));
        }
        assert_eq!(latencies.quantile(0.5), Duration::from_micros(5));
        assert_eq!(latencies.quantile(0.95), Duration::from_micros(10));
        assert_eq!(latencies.quantile(0.0), Duration::from_micros(1));
    }
}
