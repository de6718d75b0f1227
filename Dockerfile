# The page is committed in web/dist, so the image needs no Node.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY internal/third_party internal/third_party
RUN go mod download
COPY . .
ARG VERSION=docker
RUN CGO_ENABLED=1 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/nodest ./cmd/nodest

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin nodest \
 && install -d -o nodest -g nodest -m 0700 /data
COPY --from=build /out/nodest /usr/local/bin/nodest
USER nodest
ENV NODEST_ADDR=0.0.0.0:8080 NODEST_DATA=/data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=3s --start-period=5s CMD ["nodest", "doctor", "--health"]
ENTRYPOINT ["nodest"]
CMD ["serve"]
