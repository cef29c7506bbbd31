//! `tidegate transform`: a program over lines, in the sandbox that pipelines use.
//!
//! Compiled guests are kept in a folder of the user (`$XDG_CACHE_HOME/tidegate`, else `~/.cache/tidegate`, else one below
//! the folder for temporary files), so that only the first call ever compiles.

mod lines;
mod outcome;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use tidegate_api::{Chunk, ChunkBuilder, Error, Origin, Result, Transform, Transformed, canonical, code};
use tidegate_program::Program;
use tidegate_sandbox::Sandbox;

use self::lines::{Lines, Mutation};
use crate::cli::RunProgram;
use crate::output::{self, Answer};
use crate::program;

/// Outcomes of a batch wait in memory up to this size, beyond it in a temporary file: poison takes all of them back.
const MAX_OUTCOMES_IN_MEMORY: usize = 8 << 20;

/// `transform fingerprint`.
pub(crate) fn fingerprint(file: &Path) -> Result<Answer> {
    let program = program::load(file)?;
    let (name, version) = (program.name().to_owned(), program.version().to_owned());
    let transform = runtime()?.block_on(transform(program))?;
    let definition: serde_json::Value =
        serde_json::from_str(transform.definition()).map_err(|error| Error::new(&code::INTERNAL, "read definition").because(error))?;
    let fingerprint = canonical::fingerprint(&definition).to_string();
    let result = json!({"fingerprint": fingerprint, "name": name, "version": version});
    Ok(Answer::new("transform fingerprint", fingerprint.clone(), result, fingerprint + "\n"))
}

/// `transform run`.
pub(crate) fn run(arguments: &RunProgram) -> ExitCode {
    match outcomes(arguments) {
        Ok(poisoned) if poisoned && arguments.strict => ExitCode::from(1),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => output::fail(&error),
    }
}

/// Writes every outcome; gives whether one was poison.
fn outcomes(arguments: &RunProgram) -> Result<bool> {
    let program = program::load(&arguments.program)?;
    let mut input = Input::open(&arguments.input)?;
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let poisoned = runtime()?.block_on(async {
        let transform = transform(program).await?;
        if arguments.batch {
            batch(&*transform, &mut input, arguments.mutations, &mut out).await
        } else {
            each(&*transform, input.lines(arguments.mutations)?, &mut out).await
        }
    });
    // What came out before an error is shown before the error.
    let flushed = out.flush().map_err(unwritten);
    let poisoned = poisoned?;
    flushed?;
    Ok(poisoned)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| Error::new(&code::INTERNAL, "start runtime").because(error))
}

async fn transform(program: Program) -> Result<Arc<dyn Transform>> {
    let failed = |error: io::Error| Error::new(&code::MODULE_STORE, "find own executable").because(error);
    let settings = tidegate_sandbox::Settings {
        modules: cache()?.join("modules"),
        worker: std::env::current_exe().map_err(failed)?,
        threads: Some(1),
    };
    let sandbox = Sandbox::open(settings)?;
    let module = sandbox.provision_program_guest()?;
    sandbox.program(program, &module).await
}

/// The user's own folder for what can be made again.
fn cache() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let uid = rustix::process::getuid().as_raw();
    let candidates = [
        absolute("XDG_CACHE_HOME").map(|folder| folder.join("tidegate")),
        absolute("HOME").map(|folder| folder.join(".cache/tidegate")),
        Some(std::env::temp_dir().join(format!("tidegate-{uid}"))),
    ];
    let mut last = None;
    for folder in candidates.into_iter().flatten() {
        match private_folder(&folder, uid) {
            Ok(()) => return Ok(folder),
            Err(error) => last = Some((folder, error)),
        }
    }
    let mut error = Error::new(&code::MODULE_STORE, "make cache folder").fix("set XDG_CACHE_HOME to a folder that you may write");
    if let Some((folder, cause)) = last {
        error = error.with("folder", folder.display()).because(cause);
    }
    Err(error)
}

/// A folder that only its owner, `uid`, can write: nobody else may put compiled code there.
fn private_folder(folder: &Path, uid: u32) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = std::fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o022 != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the folder belongs to, or can be written by, somebody else"));
    }
    Ok(())
}

/// The lines, which a batch reads twice.
enum Input {
    File(File, PathBuf),
    Once(Box<dyn Read>),
}

impl Input {
    fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Once(Box::new(io::stdin())));
        }
        let unreadable = |error: io::Error| Error::new(&code::INPUT_UNREADABLE, "open input").with("file", path.display()).because(error);
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()));
        }
        Ok(Self::File(file, path.to_owned()))
    }

    /// How many lines there are. What can be read only once is kept in a temporary file.
    fn count(&mut self) -> Result<u64> {
        if let Self::Once(stream) = self {
            let unwritable = |error: io::Error| Error::new(&code::INPUT_UNREADABLE, "keep input").because(error);
            let mut kept = tempfile::tempfile().map_err(unwritable)?;
            io::copy(stream, &mut kept).map_err(unwritable)?;
            *self = Self::File(kept, PathBuf::from("-"));
        }
        self.lines(false)?.count()
    }

    /// The lines, from the first.
    fn lines(&mut self, mutations: bool) -> Result<Lines<'_>> {
        let reader: Box<dyn Read + '_> = match self {
            Self::Once(stream) => Box::new(stream),
            Self::File(file, path) => {
                let unseekable = file.metadata().is_ok_and(|found| !found.is_file());
                if !unseekable {
                    let failed = |error| Error::new(&code::INPUT_UNREADABLE, "read input").with("file", path.display()).because(error);
                    file.seek(SeekFrom::Start(0)).map_err(failed)?;
                }
                Box::new(file)
            }
        };
        Ok(Lines::new(BufReader::with_capacity(256 << 10, reader), mutations))
    }
}

/// Every line is a batch of its own.
async fn each(transform: &dyn Transform, mut lines: Lines<'_>, out: &mut impl Write) -> Result<bool> {
    let mut poisoned = false;
    while let Some(mutation) = lines.next()? {
        let mut builder = ChunkBuilder::default();
        builder.push(&mutation.change(0));
        let chunk = builder.finish();
        match transform.begin(1, Origin::default()).chunk(&chunk).await? {
            Transformed::Outcomes(outcomes) => outcome::write(out, &chunk, &outcomes).map_err(unwritten)?,
            Transformed::Poison(poison) => {
                poisoned = true;
                outcome::write_poison(out, &poison, None).map_err(unwritten)?;
            }
        }
    }
    Ok(poisoned)
}

/// All lines are one batch: poison takes the place of every outcome.
async fn batch(transform: &dyn Transform, input: &mut Input, mutations: bool, out: &mut impl Write) -> Result<bool> {
    let count = input.count()?;
    let mut run = transform.begin(count, Origin::default());
    let mut kept = tempfile::spooled_tempfile(MAX_OUTCOMES_IN_MEMORY);
    let mut lines = input.lines(mutations)?;
    let mut builder = ChunkBuilder::default();
    let mut ordinal = 0;
    let mut ended = false;
    while !ended {
        let mutation = lines.next()?;
        ended = mutation.is_none();
        let size = mutation.as_ref().map_or(0, Mutation::size);
        if (ended && !builder.is_empty()) || builder.is_full_for(size) {
            let chunk: Chunk = builder.finish();
            match run.chunk(&chunk).await? {
                Transformed::Outcomes(outcomes) => outcome::write(&mut kept, &chunk, &outcomes).map_err(unwritten)?,
                Transformed::Poison(poison) => {
                    let line = poison.ordinal.map(|ordinal| u64::from(ordinal) + 1);
                    outcome::write_poison(out, &poison, Some(line)).map_err(unwritten)?;
                    return Ok(true);
                }
            }
        }
        if let Some(mutation) = mutation {
            builder.push(&mutation.change(ordinal));
            ordinal += 1;
        }
    }
    kept.rewind().map_err(unwritten)?;
    io::copy(&mut kept, out).map_err(unwritten)?;
    Ok(false)
}

fn unwritten(error: io::Error) -> Error {
    Error::new(&code::OUTPUT_FAILED, "write outcomes").because(error)
}
