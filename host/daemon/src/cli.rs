//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tidegate_api::code;

use crate::command;
use crate::output::{self, Format};

/// Carries committed changes out of PostgreSQL, through sandboxed transforms, into other systems.
#[derive(Parser)]
#[command(name = "tidegate", version, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check a configuration and its programs, offline
    Validate {
        #[command(flatten)]
        config: ConfigFile,
        #[command(flatten)]
        format: Json,
    },
    /// Look at sources and destinations: everything that must hold before `run`
    Doctor {
        #[command(flatten)]
        config: ConfigFile,
        #[command(flatten)]
        format: Json,
    },
    /// Run the pipelines in the foreground, until SIGTERM or SIGINT
    Run {
        #[command(flatten)]
        config: ConfigFile,
        /// What is logged, for example info or warn,tidegate_postgres=debug
        #[arg(long, value_name = "FILTER", env = "TIDEGATE_LOG", default_value = "info")]
        log: String,
        /// How it is logged; auto: for people on a terminal, else one JSON object a line
        #[arg(long, value_enum, default_value_t = LogFormat::Auto)]
        log_format: LogFormat,
    },
    /// Show every pipeline and source of the running daemon
    Status {
        #[command(flatten)]
        daemon: Daemon,
        #[command(flatten)]
        format: Json,
    },
    /// List and steer the pipelines of the running daemon
    Pipeline {
        #[command(subcommand)]
        command: PipelineCommand,
    },
    /// List and drop what sources hold at their servers
    Slots {
        #[command(subcommand)]
        command: SlotsCommand,
    },
    /// Try a program, in the sandbox that pipelines use
    Transform {
        #[command(subcommand)]
        command: TransformCommand,
    },
    /// Print the JSON Schema of a file format
    Schema {
        #[command(subcommand)]
        command: SchemaCommand,
    },
    /// Show the version of this binary and of what it is made of
    Version {
        #[command(flatten)]
        format: Json,
    },
    /// Explain an error code
    Explain {
        /// For example TG0104
        code: String,
        #[command(flatten)]
        format: Json,
    },
    /// Compiles one module: the sandbox starts this as a child
    #[command(hide = true)]
    CompileWorker {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

#[derive(Subcommand)]
enum PipelineCommand {
    /// List the pipelines and their states
    List {
        #[command(flatten)]
        daemon: Daemon,
        #[command(flatten)]
        format: Json,
    },
    /// Stop a pipeline after the transaction in work; it stays so over restarts
    Pause(Named),
    /// Let a paused or faulted pipeline go on
    Resume(Named),
    /// Empty a pipeline's destination and fill it anew from a snapshot
    Reset {
        #[command(flatten)]
        named: Named,
        /// Do not ask (it is asked only on a terminal)
        #[arg(long)]
        yes: bool,
    },
    /// Let go of what the relay holds for a pipeline that is not configured any more
    Remove {
        #[command(flatten)]
        named: Named,
        /// Do not ask (it is asked only on a terminal)
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub(crate) struct Named {
    /// The pipeline
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) daemon: Daemon,
    #[command(flatten)]
    pub(crate) format: Json,
}

#[derive(Subcommand)]
enum SlotsCommand {
    /// List what each source holds at its server
    List {
        #[command(flatten)]
        daemon: Daemon,
        #[command(flatten)]
        format: Json,
    },
    /// Remove a source's slot, and its publication where tidegate made it; works with and without a running daemon
    Drop {
        /// The source
        source: String,
        #[command(flatten)]
        daemon: Daemon,
        /// Do not ask (it is asked only on a terminal)
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        format: Json,
    },
}

#[derive(Subcommand)]
enum TransformCommand {
    /// Run a program over lines: one outcome a line
    Run(RunProgram),
    /// Print the fingerprint of a program with this release's guest
    Fingerprint {
        /// The program file
        program: PathBuf,
        #[command(flatten)]
        format: Json,
    },
}

#[derive(Args)]
pub(crate) struct RunProgram {
    /// The program file
    pub(crate) program: PathBuf,
    /// The lines; - is the standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// Lines are mutations ({"kind": …, "document": …}), not documents
    #[arg(long)]
    pub(crate) mutations: bool,
    /// Every line is a batch of its own (the default)
    #[arg(long, conflicts_with = "batch")]
    pub(crate) each: bool,
    /// All lines are one batch
    #[arg(long)]
    pub(crate) batch: bool,
    /// Exit with 1 if anything was poison
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Subcommand)]
enum SchemaCommand {
    /// Of tidegate.yaml
    Config,
    /// Of a program file
    Program,
    /// Writes the pages of docs/errors
    #[command(hide = true)]
    Errors {
        #[arg(long, value_name = "FOLDER")]
        markdown_dir: PathBuf,
    },
}

#[derive(Args)]
pub(crate) struct ConfigFile {
    /// The configuration
    #[arg(short = 'c', long = "config", value_name = "FILE", env = "TIDEGATE_CONFIG", default_value = "tidegate.yaml")]
    pub(crate) file: PathBuf,
}

/// Which daemon is meant.
#[derive(Args)]
pub(crate) struct Daemon {
    /// The daemon's configuration
    #[arg(short = 'c', long = "config", value_name = "FILE", env = "TIDEGATE_CONFIG", default_value = "tidegate.yaml")]
    pub(crate) config: PathBuf,
    /// The daemon's data_dir, instead of its configuration
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Args, Clone, Copy)]
pub(crate) struct Json {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Json {
    fn format(self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum LogFormat {
    Auto,
    Human,
    Json,
}

/// Reads the command line, does it, and says how the process ends.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    match cli.command {
        Command::Validate { config, format } => output::finish(command::validate::run(&config.file), "validate", format.format()),
        Command::Doctor { config, format } => output::finish(command::doctor::run(&config.file), "doctor", format.format()),
        Command::Run { config, log, log_format } => command::run::run(&config.file, &log, log_format),
        Command::Status { daemon, format } => output::finish(command::client::status(&daemon), "status", format.format()),
        Command::Pipeline { command } => match command {
            PipelineCommand::List { daemon, format } => {
                output::finish(command::client::pipelines(&daemon), "pipeline list", format.format())
            }
            PipelineCommand::Pause(named) => output::finish(command::client::act(&named, "pause"), "pipeline pause", named.format.format()),
            PipelineCommand::Resume(named) => {
                output::finish(command::client::act(&named, "resume"), "pipeline resume", named.format.format())
            }
            PipelineCommand::Reset { named, yes } => {
                output::finish(command::client::reset(&named, yes), "pipeline reset", named.format.format())
            }
            PipelineCommand::Remove { named, yes } => {
                output::finish(command::client::remove(&named, yes), "pipeline remove", named.format.format())
            }
        },
        Command::Slots { command } => match command {
            SlotsCommand::List { daemon, format } => output::finish(command::slots::list(&daemon), "slots list", format.format()),
            SlotsCommand::Drop { source, daemon, yes, format } => {
                output::finish(command::slots::drop(&daemon, &source, yes), "slots drop", format.format())
            }
        },
        Command::Transform { command } => match command {
            TransformCommand::Run(arguments) => command::transform::run(&arguments),
            TransformCommand::Fingerprint { program, format } => {
                output::finish(command::transform::fingerprint(&program), "transform fingerprint", format.format())
            }
        },
        Command::Schema { command } => match command {
            SchemaCommand::Config => command::schema::config(),
            SchemaCommand::Program => command::schema::program(),
            SchemaCommand::Errors { markdown_dir } => command::explain::write_pages(&markdown_dir),
        },
        Command::Version { format } => output::finish(command::version::run(), "version", format.format()),
        Command::Explain { code, format } => output::finish(command::explain::run(&code), "explain", format.format()),
        Command::CompileWorker { arguments } => tidegate_sandbox::compile_worker(arguments.into_iter()),
    }
}

/// Help and version go to standard output; a wrong command line is an error with a code.
fn refused(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
    eprintln!("error[{}]: {text}", code::USAGE);
    ExitCode::from(code::USAGE.class.exit_code())
}
