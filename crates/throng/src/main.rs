//! The binary: command line, composition.
//!
//! Each command is a few lines here that call the room which knows; what they print goes to standard output, what
//! goes wrong is one line on standard error. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration; `load` has more.

mod arguments;
mod check;
mod control;
mod database;
mod descriptors;
mod failure;
mod keys;
mod load;
mod logging;
mod progress;
mod report;
mod sample;
mod seed;
mod serve;
mod token;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind as UsageKind;
use configuration::{Loaded, Sources};
use seeding::Numbers;

use arguments::{
    Arguments, Command, ConfigCommand, Db, Generate, Keys, Place, Report, Sample, Seed, Serve, Token,
};
use failure::{Failure, say};
use serve::ServeError;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let done = match arguments.command {
        Command::Serve(serve) => run_server(&serve),
        Command::Token(token) => print_token(&token),
        Command::Keys(Keys::Generate(generate)) => generate_key(&generate),
        Command::Config(ConfigCommand::Init { file }) => write_sample(&file),
        Command::Config(ConfigCommand::Check { place }) => check_configuration(&place),
        Command::Config(ConfigCommand::Show { place }) => {
            loaded(&place, Vec::new()).and_then(|loaded| print(&configuration::shown(&loaded.effective)))
        }
        Command::Config(ConfigCommand::Docs) => print(&configuration::documentation()),
        Command::Db(db) => database(&db),
        Command::Load(arguments) => load::run(&arguments, |place| loaded(place, Vec::new()), print),
        Command::Sample(sample) => sample_machine(&sample),
        Command::Report(report) => write_report(&report),
        Command::Seed(seed) => seed_accounts(&seed),
    };
    done.unwrap_or_else(|failure| failure.report())
}

type Done = Result<ExitCode, Failure>;

/// Help goes to standard output and is a success; a mistake is one line, with the hint if there is one.
fn usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        UsageKind::DisplayHelp | UsageKind::DisplayVersion => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        UsageKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::from(2);
        }
        _ => {}
    }
    let text = error.to_string();
    let words: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    let line = words.join("; ").replace(":; ", ": ");
    Failure::usage(format_args!("{} (`throng --help` explains)", line.trim_start_matches("error: "))).report()
}

fn run_server(arguments: &Serve) -> Done {
    let mut flags = Vec::new();
    if arguments.dev {
        flags.push(("dev", "true".to_owned()));
    }
    flags.extend(arguments.listen.iter().map(|listen| ("listen", listen.clone())));
    flags.extend(arguments.shards.iter().map(|shards| ("shards", shards.clone())));
    let loaded = loaded(&arguments.place, flags)?;
    logging::start(&loaded.config);
    serve::run(loaded.config).map_err(|error| match error {
        ServeError::Keys(_) => Failure::misconfigured(&error),
        _ => Failure::of(&error),
    })
}

fn print_token(arguments: &Token) -> Done {
    let config = loaded(&arguments.place, Vec::new())?.config;
    let request = token::Request {
        user: &arguments.user,
        device: arguments.device,
        ttl: &arguments.ttl,
        session: arguments.session.as_deref(),
    };
    match token::issue(&config, &request) {
        Ok(token) => print(&format!("{token}\n")),
        Err(error) => Err(Failure::misconfigured(&error)),
    }
}

fn generate_key(arguments: &Generate) -> Done {
    let config = loaded(&arguments.place, Vec::new())?.config;
    let made =
        keys::generate(&config.data, arguments.algorithm.into()).map_err(|error| Failure::of(&error))?;
    say(&format!(
        "wrote {}; keep it secret: whoever has it can sign tokens for anybody",
        made.signing.display()
    ));
    if let Some(verifying) = &made.verifying {
        say(&format!("wrote {}, the public key for servers elsewhere", verifying.display()));
    }
    say("a server with this data folder uses the key by itself; the configuration of another one says");
    let file = made.verifying.as_ref().unwrap_or(&made.signing);
    eprintln!("[[auth.keys]]");
    eprintln!("file = {:?}", file.display().to_string());
    eprintln!("algorithm = \"{}\"", made.algorithm);
    if !config.auth.keys.is_empty() || config.auth.jwks.is_some() {
        say("warning: the configuration names other keys, so this one is not used until they are taken out");
    }
    Ok(ExitCode::SUCCESS)
}

fn write_sample(file: &Path) -> Done {
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(file)
        .and_then(|mut opened| opened.write_all(configuration::sample().as_bytes()));
    match written {
        Ok(()) => {
            say(&format!("wrote {0}; start with `throng serve --config {0}`", file.display()));
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Failure::of(&Told(format!(
            "{}: exists already and is not replaced; name another file or remove it first",
            file.display()
        )))),
        Err(error) => Err(Failure::of(&Told(format!("{}: cannot be written: {error}", file.display())))),
    }
}

fn check_configuration(place: &Place) -> Done {
    let loaded = loaded(place, Vec::new())?;
    let mistakes = check::check(&loaded.config);
    match mistakes.is_empty() {
        true => print("the configuration is good\n"),
        false => Err(Failure::mistakes(&mistakes)),
    }
}

fn database(db: &Db) -> Done {
    match db {
        Db::Check { file, place } => {
            let config = loaded(place, Vec::new())?.config;
            let path = file.as_ref().unwrap_or(&config.data);
            let report = database::check(path).map_err(|error| Failure::of(&error))?;
            match report.is_sound() {
                true => print(&database::sound(&report)),
                false => Err(Failure::found(database::findings(path, &report))),
            }
        }
        Db::Backup { file, place } => {
            let config = loaded(place, Vec::new())?.config;
            let written = database::backup(&config.data, file).map_err(|error| Failure::of(&error))?;
            print(&written)
        }
    }
}

fn sample_machine(arguments: &Sample) -> Done {
    let config = loaded(&arguments.place, Vec::new())?.config;
    sample::run(arguments, &config).map_err(|error| match error {
        sample::SampleError::Usage(_) => Failure::usage(&error),
        _ => Failure::of(&error),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn write_report(arguments: &Report) -> Done {
    let told = report::write(arguments).map_err(|error| Failure::of(&error))?;
    print(&told)
}

fn seed_accounts(arguments: &Seed) -> Done {
    let config = loaded(&arguments.place, Vec::new())?.config;
    let done = match arguments.clean {
        true => seed::clean(&config),
        false => {
            let numbers = Numbers {
                users: arguments.users,
                conversations: arguments.conversations.unwrap_or(arguments.users / 2),
                groups: arguments.groups,
                group_size: arguments.group_size,
                seed: arguments.seed,
            };
            let wanted =
                seed::Wanted { numbers, tokens: arguments.tokens.as_deref(), ttl: arguments.ttl.as_deref() };
            seed::seed(&config, &wanted)
        }
    };
    match done {
        Ok(told) => print(&told),
        Err(error) if error.is_misuse() => Err(Failure::misconfigured(&error)),
        Err(error) => Err(Failure::of(&error)),
    }
}

/// Reads the configuration, saying what looks odd.
fn loaded(place: &Place, mut flags: Vec<(&'static str, String)>) -> Result<Loaded, Failure> {
    flags.extend(place.data.iter().map(|data| ("data", data.clone())));
    let environment = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| name.starts_with("THRONG_"))
        .collect();
    let sources = Sources { file: place.config.clone(), environment, flags };
    let loaded = configuration::load(&sources).map_err(|mistakes| Failure::mistakes(&mistakes))?;
    for warning in &loaded.warnings {
        say(&format!("warning: {warning}"));
    }
    Ok(loaded)
}

/// Prints to standard output. A reader that has gone away (`| head`) is no failure worth a word.
fn print(text: &str) -> Done {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::of(&Told(format!("standard output cannot be written: {error}"))))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// An error that is its own sentence.
#[derive(Debug)]
struct Told(String);

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Told {}
