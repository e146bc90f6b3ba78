# docker build --target cpu  --tag pfl-bench      .    name an index with CPU builds of torch by
#                                                     --build-arg PIP_EXTRA_INDEX_URL=URL for a small image
# docker build --target cuda --tag pfl-bench:cuda .    then: docker run --gpus all ... bench check-gpu
# docker run --rm --volume "$HOME/.bench:/bench" pfl-bench bench report
FROM python:3.11-slim-bookworm AS source
RUN useradd --uid 1000 --create-home bench && install --directory --owner=bench /bench
WORKDIR /suite
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY bench bench
COPY methods methods
COPY datasets datasets
COPY reports reports
COPY results results
ENV BENCH_HOME=/bench OMP_NUM_THREADS=1

# On Linux the package index has torch with CUDA and its libraries: nothing but the driver comes from the host.
FROM source AS cuda
RUN python -m pip install --no-cache-dir --constraint constraints.txt .
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 1000
WORKDIR /bench
CMD ["bench", "check-gpu"]

FROM source AS cpu
ARG PIP_EXTRA_INDEX_URL=
RUN python -m pip install --no-cache-dir --constraint constraints.txt .
USER 1000
WORKDIR /bench
CMD ["bench", "--help"]
