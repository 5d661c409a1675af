// Files as `throng load` and `throng sample` write them, made from a seed: a run with a knee, and what went on beside it.

const RUN_COLUMNS =
  "kind,time_ms,elapsed_s,step,phase,target,connections,connecting,due,ok,refused,failed,not_sent,delivered,violations," +
  "bytes_in,bytes_out,delivery_p50_ms,delivery_p95_ms,delivery_p99_ms,delivery_max_ms,ack_p50_ms,ack_p95_ms,ack_p99_ms," +
  "ack_max_ms,connect_p50_ms,connect_p95_ms,connect_p99_ms,connect_max_ms,late_p99_ms,cpu_pct,refusals,failures,thresholds";
const SAMPLE_COLUMNS =
  "time_ms,elapsed_s,cpu_busy_pct,cpu_steal_pct,cpu_iowait_pct,psi_cpu_some_pct,psi_memory_some_pct,psi_io_some_pct," +
  "memory_available_bytes,memory_total_bytes,tcp_in_use,tcp_orphans,tcp_time_wait,tcp_memory_bytes,listen_overflows," +
  "listen_drops,server_resident_bytes,server_descriptors,server_threads,server_cpu_pct,busiest_thread,busiest_thread_pct," +
  "store_queue,store_commits,store_commit_mean_ms,store_requests,database_connections,connections,api_ms,api_status";

const START_MS = 1_796_062_500_000;
/** Requests a second that the server of these files carries. */
const CAPACITY = 1_100;

/** A generator of numbers between 0 and 1 (xorshift, Marsaglia 2003). */
function chance(seed) {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

const ms = (value) => value.toFixed(3);
const latencies = (p50) => [p50, p50 * 2.1, p50 * 3.9, p50 * 7].map(ms);

/** `steps` are messages a second; each is ramped to for `ramp` seconds and held for `hold`. */
export function runFile({ seed, steps, ramp, hold, command }) {
  const random = chance(seed);
  const lines = [
    "# throng: 0.1.0 (0123456)",
    `# command: ${command}`,
    "# scenario: chat",
    "# server: ws://127.0.0.1:8080",
    "# machine: 4 cpus, Some Processor @ 2.50GHz, 24.0 GiB, Linux 6.18.44",
    `# started: ${START_MS}`,
    "# threshold: delivery p95<50ms",
    "# threshold: errors<0.1%",
    "# interval_ms: 1000",
    RUN_COLUMNS,
  ];
  let second = 0;
  let phaseOf = "ramp";
  const row = (kind, step, phase, target, counts, times, thresholds) => {
    const head = [kind, START_MS + 1000 * second, second.toFixed(3), step, phase, target];
    lines.push([...head, ...counts, ...times, thresholds].join(","));
  };
  const measured = (target, seconds) => {
    const due = Math.round(target * seconds);
    const load = target / CAPACITY;
    const refused = load > 1 ? Math.round(due * 0.004) : 0;
    const failed = load > 1 ? Math.round(due * 0.006 * random()) : 0;
    const ok = due - refused - failed;
    const p50 = (load < 1 ? 1.2 / (1 - 0.93 * load) : 45 + 60 * (load - 1)) * (0.9 + 0.2 * random());
    const delivery = latencies(p50);
    const connecting = phaseOf === "ramp" ? 3 : 0;
    const counts = [200, connecting, due, ok, refused, failed, 0, ok, 0, due * 310, due * 295];
    // Nobody connects while a step is held.
    const connect = phaseOf === "ramp" ? latencies(2 + random()) : ["", "", "", ""];
    const rest = [ms(0.03 + 0.02 * random()), (12 + 60 * load).toFixed(1)];
    const names = [refused ? `rate_limited=${refused}` : "", failed ? `timeout=${failed}` : ""];
    return { counts, times: [...delivery, ...latencies(p50 * 0.6), ...connect, ...rest, ...names] };
  };
  steps.forEach((target, index) => {
    for (const [phase, seconds] of [["ramp", ramp], ["hold", hold]]) {
      phaseOf = phase;
      for (let at = 0; at < seconds; at += 1) {
        second += 1;
        const { counts, times } = measured(target, 1);
        row("second", index + 1, phase, target, counts, times, "");
      }
    }
    const { counts, times } = measured(target, hold);
    const verdict = target < CAPACITY ? "held;held" : "broken;broken";
    row("step", index + 1, "hold", target, counts, times, verdict);
  });
  lines.push("# ended: finished", "");
  return { text: lines.join("\n"), seconds: second };
}

/** Every two seconds from before the run until after it, with one stretch in which the server was not found. */
export function sampleFile({ seed, seconds }) {
  const random = chance(seed);
  const lines = [
    "# throng: 0.1.0",
    "# command: throng sample --csv sample.csv",
    "# machine: 4 cpus, Some Processor @ 2.50GHz, 24.0 GiB, Linux 6.18.44",
    `# started: ${START_MS - 6000}`,
    "# interval_ms: 2000",
    SAMPLE_COLUMNS,
  ];
  for (let at = -4; at <= seconds + 6; at += 2) {
    const share = Math.min(1, Math.max(0, at / seconds));
    const isLost = share > 0.45 && share < 0.55;
    const near = (value) => (value * (0.9 + 0.2 * random())).toFixed(2);
    const machine = [near(15 + 70 * share), near(1), near(4), near(8 + 30 * share), "0.00", near(5)];
    const memory = [Math.round(2.2e10 - 2e9 * share), 25276502016];
    const tcp = [412, 0, 36, 1_400_000 + Math.round(5e5 * random())];
    const server = isLost
      ? ["", "", "", "", "", ""]
      : [Math.round(4.1e7 + 2.2e7 * share), 236, 9, near(20 + 110 * share), "shard-1", near(12 + 70 * share)];
    const store = isLost
      ? ["", "", "", "", "", "", "", "unreachable"]
      : [Math.round(60 * share * share * random()), 180, near(2 + 6 * share), 2600, 3, 200, near(1 + 18 * share ** 3), 200];
    const overflows = [share > 0.9 && random() < 0.3 ? 4 : 0, 0];
    const time = [START_MS + 1000 * at, (at + 6).toFixed(3)];
    lines.push([...time, ...machine, ...memory, ...tcp, ...overflows, ...server, ...store].join(","));
  }
  lines.push("# ended: interrupted", "");
  return lines.join("\n");
}
