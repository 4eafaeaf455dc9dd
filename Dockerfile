# The image of Ieum's daemon. Its steps are scripts, so that they can be tested where there is no Docker (make test).

FROM swift:6.3-bookworm AS build
WORKDIR /ieum
# First what seldom changes, so that a change in the sources does not install it again.
COPY script/install-dependencies script/
RUN script/install-dependencies --build
COPY . .
RUN script/image-build /image

FROM debian:bookworm-slim
COPY --from=build /image/ /
COPY script/image-runtime-packages /usr/local/share/ieum/
RUN bash /usr/local/share/ieum/image-runtime-packages /usr/local/share/ieum/runtime-packages \
    && useradd --system --uid 4386 --user-group --no-create-home --home-dir /nonexistent ieum
USER ieum
# Where `ieum` in the container finds the daemon. With TLS: tls://NAME:4386, NAME being the certificate's and the container's.
ENV IEUM_HOME=/tmp/ieum IEUM_SERVER=127.0.0.1:4386
EXPOSE 4386
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["ieum", "ping"]
ENTRYPOINT ["ieumd"]
CMD ["serve", "--listen=0.0.0.0:4386", "--insecure"]
