//! OpenTelemetry metrics under the scope `tidegate`, as Prometheus text.
//!
//! Labels are fixed and bounded by the configuration: `pipeline`, `source`, `state`, `outcome`. Never a key, a tenant or a
//! position.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter, MeterProvider as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Encoder as _, Registry, TextEncoder};
use tidegate_api::{Error, Result, code};

use crate::Host;
use crate::status::{Pipeline, Source};

/// Every state that a pipeline can be in.
const PIPELINE_STATES: &[&str] =
    &["provisioning", "snapshotting", "catching-up", "running", "paused", "rebuilding", "reconciling", "faulted", "stopped"];

/// Every state that a source can be in.
const SOURCE_STATES: &[&str] = &["starting", "capturing", "waiting", "faulted", "stopped"];

/// The daemon's metrics: read from its status when they are asked for.
pub struct Metrics {
    registry: Registry,
    _provider: SdkMeterProvider,
}

impl Metrics {
    /// Metrics over `host`.
    ///
    /// # Errors
    /// When the exporter cannot be built.
    pub fn new(host: &Arc<dyn Host>) -> Result<Self> {
        let registry = Registry::new();
        let failed = |error: &dyn std::fmt::Display| Error::new(&code::INTERNAL, "build metrics").because(error.to_string());
        let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build().map_err(|error| failed(&error))?;
        let resource = Resource::builder().with_service_name("tidegate").build();
        let provider = SdkMeterProvider::builder().with_reader(exporter).with_resource(resource).build();
        instruments(&provider.meter("tidegate"), host);
        Ok(Self { registry, _provider: provider })
    }

    /// The text for a scrape, of now.
    ///
    /// # Errors
    /// When it cannot be encoded.
    pub fn text(&self) -> Result<String> {
        let mut out = Vec::new();
        let failed = |error: &dyn std::fmt::Display| Error::new(&code::INTERNAL, "encode metrics").because(error.to_string());
        TextEncoder::new().encode(&self.registry.gather(), &mut out).map_err(|error| failed(&error))?;
        String::from_utf8(out).map_err(|error| failed(&error))
    }
}

fn instruments(meter: &Meter, host: &Arc<dyn Host>) {
    counter(meter, host, "tidegate.pipeline.transactions", "{transaction}", "source transactions written", |pipeline| {
        pipeline.transactions
    });
    counter(meter, host, "tidegate.pipeline.rows", "{row}", "changes written", |pipeline| pipeline.rows);
    counter(meter, host, "tidegate.pipeline.snapshot.rows", "{row}", "rows that snapshots wrote", |pipeline| pipeline.snapshot_rows);
    counter(meter, host, "tidegate.pipeline.retries", "{attempt}", "attempts that had to be made again", |pipeline| pipeline.retries);
    pipeline_gauge(meter, host, "tidegate.relay.backlog", "By", "bytes in the relay that the pipeline has not written yet", |pipeline| {
        pipeline.lag_bytes as f64
    });
    pipeline_gauge(
        meter,
        host,
        "tidegate.pipeline.lag",
        "s",
        "age of the newest transaction that is written, while more is waiting",
        |pipeline| pipeline.lag_seconds,
    );
    source_gauge(meter, host, "tidegate.source.slot.retained", "By", "log that the server keeps for the slot", |source| {
        source.retained_bytes
    });
    source_gauge(meter, host, "tidegate.relay.stored", "By", "bytes in the relay", |source| Some(source.relay_bytes));
    states(meter, host);
}

fn counter(meter: &Meter, host: &Arc<dyn Host>, name: &'static str, unit: &'static str, about: &'static str, read: fn(&Pipeline) -> u64) {
    let host = Arc::clone(host);
    let observe = move |instrument: &dyn AsyncInstrument<u64>| {
        for pipeline in host.status().pipelines {
            let labels = [KeyValue::new("pipeline", pipeline.name.clone()), KeyValue::new("outcome", "applied")];
            instrument.observe(read(&pipeline), &labels);
        }
    };
    meter.u64_observable_counter(name).with_unit(unit).with_description(about).with_callback(observe).build();
}

fn pipeline_gauge(
    meter: &Meter,
    host: &Arc<dyn Host>,
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    read: fn(&Pipeline) -> f64,
) {
    let host = Arc::clone(host);
    let observe = move |instrument: &dyn AsyncInstrument<f64>| {
        for pipeline in host.status().pipelines {
            instrument.observe(read(&pipeline), &[KeyValue::new("pipeline", pipeline.name.clone())]);
        }
    };
    meter.f64_observable_gauge(name).with_unit(unit).with_description(about).with_callback(observe).build();
}

fn source_gauge(
    meter: &Meter,
    host: &Arc<dyn Host>,
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    read: fn(&Source) -> Option<u64>,
) {
    let host = Arc::clone(host);
    let observe = move |instrument: &dyn AsyncInstrument<u64>| {
        for source in host.status().sources {
            if let Some(value) = read(&source) {
                instrument.observe(value, &[KeyValue::new("source", source.name.clone())]);
            }
        }
    };
    meter.u64_observable_gauge(name).with_unit(unit).with_description(about).with_callback(observe).build();
}

/// State sets: 1 for the state that holds, 0 for the others.
fn states(meter: &Meter, host: &Arc<dyn Host>) {
    let of = Arc::clone(host);
    let pipelines = move |instrument: &dyn AsyncInstrument<u64>| {
        for pipeline in of.status().pipelines {
            for state in PIPELINE_STATES {
                let labels = [KeyValue::new("pipeline", pipeline.name.clone()), KeyValue::new("state", *state)];
                instrument.observe(u64::from(pipeline.state == *state), &labels);
            }
        }
    };
    let of = Arc::clone(host);
    let sources = move |instrument: &dyn AsyncInstrument<u64>| {
        for source in of.status().sources {
            for state in SOURCE_STATES {
                let labels = [KeyValue::new("source", source.name.clone()), KeyValue::new("state", *state)];
                instrument.observe(u64::from(source.state == *state), &labels);
            }
        }
    };
    meter.u64_observable_gauge("tidegate.pipeline.state").with_description("1 for the pipeline's state").with_callback(pipelines).build();
    meter.u64_observable_gauge("tidegate.source.state").with_description("1 for the source's state").with_callback(sources).build();
}
