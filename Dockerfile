# syntax=docker/dockerfile:1
# The work queue as a container, which is what is built unless said otherwise, and a town as a container (--target gt);
# docs/guides/containers.md says how to run them.

FROM rust:1.95-slim-trixie AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY crates crates
# What is downloaded and compiled once is there the next time; the caches are not part of the image.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --package gt-cli && \
    install -D --target-directory=/out target/release/gt target/release/bd

# A town, for clients with tokens. It is never root, and writes to /town and /tmp alone. Agents are added by images built on it.
FROM debian:trixie-slim AS gt
# git holds the work of rigs; wget asks for the health.
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install --yes --no-install-recommends ca-certificates git wget && \
    rm -rf /var/lib/apt/lists/* && \
    groupadd --gid 10001 gt && \
    useradd --uid 10001 --gid gt --home-dir /town --no-create-home --shell /usr/sbin/nologin gt && \
    install --directory --owner=gt --group=gt --mode=0700 /town
COPY --from=build /out/gt /out/bd /usr/local/bin/
ENV HOME=/town \
    PORT=8080
USER 10001:10001
WORKDIR /town
VOLUME /town
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s --retries=3 \
    CMD ["sh", "-c", "wget -qO- http://localhost:${PORT}/health"]
ENTRYPOINT ["gt"]
CMD ["serve", "--bind", "0.0.0.0", "--require-token"]

# The work queue.
FROM debian:trixie-slim
# wget asks for the health; the certificates are for encrypted databases and notices to web services.
# setpriv, which the entry point needs, is part of every Debian.
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install --yes --no-install-recommends ca-certificates wget && \
    rm -rf /var/lib/apt/lists/* && \
    groupadd --gid 10001 gt && \
    useradd --uid 10001 --gid gt --home-dir /data --no-create-home --shell /usr/sbin/nologin gt && \
    install --directory --owner=gt --group=gt /data
COPY --from=build /out/gt /out/bd /usr/local/bin/
COPY --chmod=755 packaging/entrypoint.sh /usr/local/bin/entrypoint.sh

# Every client that reaches the container may do everything, as the network around it is meant to be closed.
# The server says so when it starts; with GT_INSECURE=0 it wants tokens.
ENV DATABASE_URL=/data/work_queue.db \
    GT_DATA=/data \
    GT_INSECURE=1 \
    PORT=8080
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s --retries=3 \
    CMD ["sh", "-c", "wget -qO- http://localhost:${PORT}/health"]
# It begins as root and ends as the user gt. With --user it is that user from the beginning.
ENTRYPOINT ["entrypoint.sh"]
CMD ["gt", "serve", "--bind", "0.0.0.0"]
