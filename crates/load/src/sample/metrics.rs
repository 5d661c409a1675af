//! The page `/metrics` of the server as a sampler needs it (the text format of Prometheus, version 0.0.4).

/// The sum of a metric over all its labels; none when the page has no such metric.
pub fn sum(page: &str, name: &str) -> Option<f64> {
    let mut values = page.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        rest.starts_with([' ', '{']).then(|| rest.rsplit(' ').next()?.parse::<f64>().ok())
    });
    let first = values.next()??;
    values.try_fold(first, |sum, value| Some(sum + value?))
}

/// What a sampler takes from the page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerMetrics {
    /// Requests taken and not answered.
    pub store_queue: Option<f64>,
    /// Batches since the start.
    pub store_commits: Option<f64>,
    /// Seconds that they took together.
    pub store_commit_seconds: Option<f64>,
    /// Requests carried out since the start.
    pub store_requests: Option<f64>,
    /// Open connections.
    pub connections: Option<f64>,
}

impl ServerMetrics {
    /// Reads them from the page.
    pub fn read(page: &str) -> ServerMetrics {
        ServerMetrics {
            store_queue: sum(page, "throng_store_queue_requests"),
            store_commits: sum(page, "throng_store_commit_seconds_count"),
            store_commit_seconds: sum(page, "throng_store_commit_seconds_sum"),
            store_requests: sum(page, "throng_store_requests_total"),
            connections: sum(page, "throng_connections"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_summed_over_its_labels_and_not_taken_for_a_longer_name() {
        let page = "# HELP throng_connections Open.\n# TYPE throng_connections gauge\n\
                    throng_connections{shard=\"0\"} 3\nthrong_connections{shard=\"1\"} 4\n\
                    throng_connections_unauthenticated{shard=\"0\"} 100\n\
                    throng_store_commit_seconds_sum 1.25\nthrong_store_commit_seconds_count 8\n\
                    throng_store_requests_total 20\n";
        let read = ServerMetrics::read(page);
        assert_eq!(read.connections, Some(7.0));
        assert_eq!((read.store_commits, read.store_commit_seconds), (Some(8.0), Some(1.25)));
        assert_eq!((read.store_requests, read.store_queue), (Some(20.0), None));
        assert_eq!(sum("a 1\na x\n", "a"), None);
    }
}
