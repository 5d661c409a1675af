//! The command line itself: help that helps, and mistakes that are one line.

use crate::run::{Place, fails};

#[test]
fn every_command_has_help_on_standard_output() {
    let place = Place::new();
    for arguments in [
        vec!["--help"],
        vec!["serve", "--help"],
        vec!["token", "--help"],
        vec!["keys", "--help"],
        vec!["keys", "generate", "--help"],
        vec!["config", "--help"],
        vec!["config", "init", "--help"],
        vec!["config", "check", "--help"],
        vec!["config", "show", "--help"],
        vec!["config", "docs", "--help"],
        vec!["db", "--help"],
        vec!["db", "check", "--help"],
        vec!["db", "backup", "--help"],
        vec!["load", "--help"],
        vec!["sample", "--help"],
        vec!["report", "--help"],
        vec!["seed", "--help"],
    ] {
        assert!(place.prints(&arguments).contains("Usage: throng"), "{arguments:?}");
    }
    for command in ["serve", "token", "load", "sample", "report", "seed"] {
        let help = place.prints(&[command, "--help"]);
        assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{help}");
    }
    assert_eq!(place.prints(&["--version"]), concat!("throng ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_mistake_on_the_command_line_is_one_line() {
    let place = Place::new();
    for (arguments, said) in [
        (vec!["serv"], "unrecognized subcommand 'serv'; tip: a similar subcommand exists: 'serve'"),
        (
            vec!["serve", "--lisen", "x"],
            "unexpected argument '--lisen' found; tip: a similar argument exists: '--listen'",
        ),
        (vec!["token", "--user", "a"], "the following required arguments were not provided: --device <N>"),
        (
            vec!["token", "--user", "a", "--device", "x"],
            "invalid value 'x' for '--device <N>': invalid digit found in string",
        ),
        (
            vec!["keys", "generate", "--algorithm", "rot13"],
            "invalid value 'rot13' for '--algorithm <ALGORITHM>'; [possible values: ed25519, hs256]",
        ),
    ] {
        fails(&place.run(&arguments), 2, &[&format!("{said} (`throng --help` explains)")]);
    }
}

#[test]
fn without_arguments_the_help_is_shown_and_it_is_a_mistake() {
    let outcome = Place::new().run(&[]);
    assert_eq!((outcome.code, outcome.out.as_str()), (2, ""));
    assert!(outcome.err.contains("throng serve --dev"), "{}", outcome.err);
}
