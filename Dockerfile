# syntax=docker/dockerfile:1

# The build needs Rust and gcc only; SQLite and the cryptographic library are compiled from their sources.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --release --locked --package throng \
    && cp target/release/throng /usr/local/bin/throng

FROM debian:bookworm-slim
RUN groupadd --gid 10001 throng \
    && useradd --uid 10001 --gid throng --no-create-home --home-dir /var/lib/throng --shell /usr/sbin/nologin throng \
    && install --directory --owner throng --group throng --mode 0750 /var/lib/throng
COPY --from=build /usr/local/bin/throng /usr/local/bin/throng
COPY LICENSE-APACHE LICENSE-MIT /usr/share/doc/throng/
USER throng
VOLUME /var/lib/throng
EXPOSE 8080
# The server drains on SIGTERM: give it its 30 seconds with `docker stop --time 35`.
STOPSIGNAL SIGTERM
# bash opens the connection, so that nothing has to be installed for this.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /livez HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && read -r -t 2 _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["throng"]
CMD ["serve", "--listen", "0.0.0.0:8080", "--data", "/var/lib/throng"]
