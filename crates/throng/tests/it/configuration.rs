//! Every class of mistake in a configuration gives one line that names the place and what to do.

use crate::run::{Place, fails};

/// Shows the configuration of a file, which must fail with these lines.
fn mistaken(file: &str, lines: &[&str]) {
    let place = Place::new();
    place.write("c.toml", file);
    fails(&place.run(&["config", "show", "--config", "c.toml"]), 2, lines);
}

#[test]
fn bad_syntax_names_the_line() {
    mistaken(
        "listen = \"127.0.0.1:1\"\n\n[log\nformat = \"json\"\n",
        &["c.toml:3: not TOML: unclosed table, expected `]`"],
    );
    mistaken("shards = 1\nshards = 2\n", &["c.toml:2: not TOML: duplicate key"]);
    mistaken("listen = 127.0.0.1\n", &["c.toml:1: not TOML: invalid float, expected nothing"]);
}

#[test]
fn an_unknown_key_names_the_nearest_known_one() {
    mistaken(
        "\n\nlisten_on = \"x\"\n",
        &["c.toml:3: unknown key `listen_on`; the nearest known key is `listen`"],
    );
    mistaken(
        "[connections]\nping_intervall = \"10s\"\n",
        &[
            "c.toml:2: unknown key `connections.ping_intervall`; the nearest known key is `connections.ping_interval`",
        ],
    );
    // In the wrong section.
    mistaken(
        "ping_interval = \"10s\"\n",
        &["c.toml:1: unknown key `ping_interval`; the nearest known key is `connections.ping_interval`"],
    );
    mistaken(
        "log.fromat = \"json\"\n",
        &["c.toml:1: unknown key `log.fromat`; the nearest known key is `log.format`"],
    );
    mistaken(
        "[conections]\nping_interval = \"10s\"\nreconnect_min = \"1s\"\n",
        &["c.toml:1: unknown section `[conections]`; the nearest known one is `[connections]`"],
    );
    mistaken(
        "[[auth.keys]]\nfile = \"a\"\nalgorithm = \"HS256\"\nkit = \"a\"\n",
        &["c.toml:4: unknown key `auth.keys.kit`; the nearest known key is `auth.keys.kid`"],
    );
}

#[test]
fn a_value_of_the_wrong_type_names_what_is_expected() {
    mistaken(
        "shards = \"two\"\n",
        &["c.toml:1: `shards` must be a whole number from 0 to 1024, not \"two\""],
    );
    // A number in quotes is a text.
    mistaken("shards = \"2\"\n", &["c.toml:1: `shards` must be a whole number from 0 to 1024, not \"2\""]);
    mistaken(
        "shards = 2.0\n",
        &["c.toml:1: `shards` must be a whole number from 0 to 1024, not a TOML float"],
    );
    mistaken("dev = 1\n", &["c.toml:1: `dev` must be true or false, not 1"]);
    mistaken("drain = 20\n", &["c.toml:1: `drain` must be a length of time from \"0s\" to \"25s\", not 20"]);
    mistaken(
        "origins = \"https://a.example\"\n",
        &["c.toml:1: `origins` must be a list of origins exactly as browsers send them, such as \
           [\"https://chat.example.org\"], not \"https://a.example\""],
    );
    mistaken(
        "[listen]\nport = 8080\n",
        &[
            "c.toml:1: `listen` must be an address and a port, such as \"127.0.0.1:8080\" or \"[::]:8080\", not a TOML table",
        ],
    );
    mistaken("log = \"json\"\n", &["c.toml:1: `log` is a section: write `[log]` and its keys below"]);
    mistaken(
        "[auth]\nkeys = \"key.pem\"\n",
        &[
            "c.toml:2: `auth.keys` must be a list of tables `[[auth.keys]]` with `file`, `algorithm` and perhaps `kid`, \
           not \"key.pem\"",
        ],
    );
    mistaken(
        "[[auth.keys]]\nfile = 1\nalgorithm = \"none\"\nkid = \"\"\n",
        &[
            "c.toml:2: `auth.keys.file` must be the path of a file, not 1",
            "c.toml:3: `auth.keys.algorithm` must be \"HS256\" or \"EdDSA\" or \"ES256\" or \"RS256\", not \"none\"",
            "c.toml:4: `auth.keys.kid` must be a text of 1 to 255 bytes, not \"\"",
        ],
    );
    mistaken(
        "[[auth.keys]]\nfile = \"a\"\nalgorithm = \"HS256\"\n[[auth.keys]]\nfile = \"a\"\n",
        &["c.toml:4: key 2 of `auth.keys` has no `algorithm`"],
    );
}

#[test]
fn a_value_out_of_range_names_the_range() {
    mistaken("shards = 1025\n", &["c.toml:1: `shards` must be a whole number from 0 to 1024, not 1025"]);
    mistaken("shards = -1\n", &["c.toml:1: `shards` must be a whole number from 0 to 1024, not -1"]);
    mistaken(
        "shards = 99999999999999999999\n",
        &["c.toml:1: `shards` must be a whole number from 0 to 1024, not 99999999999999999999"],
    );
    mistaken(
        "drain = \"26s\"\n",
        &["c.toml:1: `drain` must be a length of time from \"0s\" to \"25s\", not \"26s\""],
    );
    mistaken(
        "[messages]\npayload_bytes_max = 65537\nretention = \"forever\"\n",
        &[
            "c.toml:2: `messages.payload_bytes_max` must be a whole number from 1024 to 65536, not 65537",
            "c.toml:3: `messages.retention` must be \"until_acknowledged\", or a length of time from \"1m\" to \
             \"3650d\", not \"forever\"",
        ],
    );
    mistaken(
        "[log]\nformat = \"xml\"\nlevel = \"loud\"\n",
        &[
            "c.toml:2: `log.format` must be \"text\" or \"json\", not \"xml\"",
            "c.toml:3: `log.level` must be \"error\", \"warn\", \"info\", \"debug\" or \"trace\", or levels by part such \
             as \"info,reactor=debug\", not \"loud\"",
        ],
    );
    mistaken(
        "origins = [\"https://a.example\", \"*\"]\n",
        &["c.toml:1: `origins` must be a list of origins exactly as browsers send them, such as \
           [\"https://chat.example.org\"], not [\"https://a.example\", \"*\"]"],
    );
}

#[test]
fn options_that_contradict_each_other_are_named() {
    mistaken(
        "[connections]\nreconnect_min = \"1m\"\n",
        &[
            "c.toml:2: `connections.reconnect_min` (1m) may not be greater than `connections.reconnect_max` (10s)",
        ],
    );
    mistaken(
        "[connections]\nunauthenticated_max = 100\n",
        &["c.toml:2: `connections.unauthenticated_per_address_max` (1024) may not be greater than \
           `connections.unauthenticated_max` (100)"],
    );
}

#[test]
fn what_this_version_cannot_do_is_refused() {
    mistaken(
        "[messages]\nretention = \"30d\"\n",
        &[
            "c.toml:2: `messages.retention`: this version keeps bodies until they are acknowledged, and has no other way yet",
        ],
    );
}

#[test]
fn all_mistakes_are_told_in_the_order_of_their_lines() {
    mistaken(
        "zzz = 1\n[log]\nlevell = 1\n[auth]\naudienc = 1\n",
        &[
            "c.toml:1: unknown key `zzz`; the nearest known key is `dev`",
            "c.toml:3: unknown key `log.levell`; the nearest known key is `log.level`",
            "c.toml:5: unknown key `auth.audienc`; the nearest known key is `auth.audience`",
        ],
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let place = Place::new();
    let outcome = place.run(&["config", "check", "--config", "no.toml"]);
    fails(&outcome, 2, &["no.toml: cannot be read: No such file or directory (os error 2)"]);
    let outcome = place.run_with(&["config", "check"], &[("THRONG_CONFIG", "no.toml")]);
    fails(&outcome, 2, &["no.toml: cannot be read: No such file or directory (os error 2)"]);
    place.write("binary.toml", [0xff, 0xfe]);
    let outcome = place.run(&["config", "check", "--config", "binary.toml"]);
    fails(&outcome, 2, &["binary.toml: cannot be read: stream did not contain valid UTF-8"]);
}

#[test]
fn a_flag_counts_more_than_the_environment_and_that_more_than_the_file() {
    let place = Place::new();
    place.write("c.toml", "data = \"from-file\"\nshards = 3\n[log]\nlevel = \"warn\"\n");
    let environment = [("THRONG_DATA", "from-environment"), ("THRONG_SHARDS", "4")];
    let arguments = ["config", "show", "--config", "c.toml", "--data", "from-flag"];
    let shown = |arguments: &[&str], environment: &[(&str, &str)]| {
        let outcome = place.run_with(arguments, environment);
        assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
        let line = |key: &str| {
            let line = outcome.out.lines().find(|line| line.starts_with(key)).expect("every option is shown");
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        ["data", "shards", "log.level", "listen"].map(line)
    };
    assert_eq!(
        shown(&arguments, &environment),
        [
            "data = \"from-flag\" # --data",
            "shards = 4 # THRONG_SHARDS in the environment",
            "log.level = \"warn\" # c.toml:4",
            "listen = \"127.0.0.1:8080\" # default",
        ]
    );
    assert_eq!(
        shown(&arguments[..4], &environment)[0],
        "data = \"from-environment\" # THRONG_DATA in the environment"
    );
    assert_eq!(
        shown(&arguments[..4], &[])[..2],
        ["data = \"from-file\" # c.toml:1", "shards = 3 # c.toml:2"]
    );
    // The file may be named by the environment too.
    let by_environment = shown(&["config", "show"], &[("THRONG_CONFIG", "c.toml")]);
    assert_eq!(by_environment[1], "shards = 3 # c.toml:2");
}

#[test]
fn what_is_overridden_is_checked_where_it_counts() {
    let place = Place::new();
    let outcome = place.run_with(&["config", "show"], &[("THRONG_SHARDS", "many"), ("THRONG_DEV", "yes")]);
    fails(
        &outcome,
        2,
        &[
            "THRONG_DEV in the environment: `dev` must be true or false, not \"yes\"",
            "THRONG_SHARDS in the environment: `shards` must be a whole number from 0 to 1024, not \"many\"",
        ],
    );
    let outcome =
        place.run_with(&["serve", "--shards", "x", "--listen", "localhost"], &[("THRONG_SHARDS", "2")]);
    fails(
        &outcome,
        2,
        &[
            "--listen: `listen` must be an address and a port, such as \"127.0.0.1:8080\" or \"[::]:8080\", not \
             \"localhost\"",
            "--shards: `shards` must be a whole number from 0 to 1024, not \"x\"",
        ],
    );
}

#[test]
fn lists_come_from_the_environment_with_commas() {
    let place = Place::new();
    let shown = |list: &str| {
        let outcome = place.run_with(&["config", "show"], &[("THRONG_ORIGINS", list)]);
        outcome.out.lines().find(|line| line.starts_with("origins")).map(str::to_owned).unwrap_or(outcome.err)
    };
    assert!(
        shown("https://a.example, http://b:1")
            .starts_with("origins = [\"https://a.example\", \"http://b:1\"]")
    );
    assert!(shown("").starts_with("origins = []"));
    assert!(shown("https://a.example/").contains("THRONG_ORIGINS in the environment"));
}

#[test]
fn a_slip_in_a_variable_is_pointed_out_and_others_are_left_alone() {
    let place = Place::new();
    let said = |name: &str| place.run_with(&["config", "check", "--data", "d"], &[(name, "x")]).err;
    assert!(said("THRONG_LISTNE").starts_with(
        "throng: warning: THRONG_LISTNE in the environment: sets no option; the nearest known variable is THRONG_LISTEN"
    ));
    // What Kubernetes sets for a service of this name.
    assert!(!said("THRONG_SERVICE_HOST").contains("warning"));
}

#[test]
fn paths_in_the_file_are_meant_from_where_it_lies() {
    let place = Place::new();
    std::fs::create_dir(place.path("etc")).expect("a folder");
    place.write(
        "etc/c.toml",
        "data = \"data\"\n[auth]\njwks = \"/abs.json\"\nkeys = [{ file = \"k\", algorithm = \"HS256\" }]\n",
    );
    let shown = place.prints(&["config", "show", "--config", "etc/c.toml"]);
    assert!(shown.contains("data = \"etc/data\""), "{shown}");
    assert!(shown.contains("auth.jwks = \"/abs.json\""), "{shown}");
    assert!(shown.contains("auth.keys = [{ file = \"etc/k\", algorithm = \"HS256\" }]"), "{shown}");
}

#[test]
fn the_sample_says_what_holds_without_it() {
    let place = Place::new();
    let outcome = place.run(&["config", "init"]);
    assert_eq!((outcome.code, outcome.out.as_str()), (0, ""));
    assert_eq!(outcome.err, "throng: wrote throng.toml; start with `throng serve --config throng.toml`\n");
    let values = |arguments: &[&str]| -> Vec<String> {
        let shown = place.prints(arguments);
        shown.lines().map(|line| line.split("  #").next().unwrap_or_default().trim_end().to_owned()).collect()
    };
    let defaults = values(&["config", "show"]);
    assert_eq!(values(&["config", "show", "--config", "throng.toml"]), defaults);
    // With every option taken out of its comment, all is set, and to the default.
    let sample = std::fs::read_to_string(place.path("throng.toml")).expect("the sample");
    let all: Vec<&str> = sample
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(option)
                if option.starts_with(|c: char| c.is_ascii_lowercase()) && !option.starts_with("keys") =>
            {
                option
            }
            _ => line,
        })
        .collect();
    place.write("all.toml", all.join("\n"));
    let shown = place.prints(&["config", "show", "--config", "all.toml"]);
    assert_eq!(
        shown.lines().filter(|line| line.contains("# default")).count(),
        1,
        "all but `auth.keys`: {shown}"
    );
    let with_all = values(&["config", "show", "--config", "all.toml"]);
    assert_eq!(with_all, defaults);

    place.write("throng.toml", "mine");
    let again = place.run(&["config", "init"]);
    fails(
        &again,
        1,
        &["throng.toml: exists already and is not replaced; name another file or remove it first"],
    );
    assert_eq!(std::fs::read_to_string(place.path("throng.toml")).expect("the file"), "mine");
    fails(
        &place.run(&["config", "init", "no/such/folder.toml"]),
        1,
        &["no/such/folder.toml: cannot be written: No such file or directory (os error 2)"],
    );
}

#[test]
fn the_documentation_in_the_repository_is_what_the_binary_prints() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(page).expect("docs/configuration.md");
    assert!(
        page == Place::new().prints(&["config", "docs"]),
        "run `cargo run -p throng -- config docs > docs/configuration.md`"
    );
}

#[test]
fn check_looks_at_the_key_files() {
    let place = Place::new();
    let check = |file: &str| {
        place.write("c.toml", file);
        place.run(&["config", "check", "--config", "c.toml"])
    };
    let key = |algorithm: &str| format!("[[auth.keys]]\nfile = \"key\"\nalgorithm = \"{algorithm}\"\n");
    fails(
        &check(&key("EdDSA")),
        2,
        &["key: the key file cannot be read: No such file or directory (os error 2)"],
    );
    std::fs::create_dir(place.path("key")).expect("a folder");
    fails(&check(&key("EdDSA")), 2, &["key: the key file cannot be read: Is a directory (os error 21)"]);
    std::fs::remove_dir(place.path("key")).expect("an empty folder");

    place.write("key", "complete garbage, but secret");
    let garbage = check(&key("EdDSA"));
    fails(
        &garbage,
        2,
        &["key: not a usable key: not a PEM text with one `-----BEGIN PUBLIC KEY-----` block"],
    );
    fails(
        &check(&key("HS256")),
        2,
        &["key: not a usable key: an HS256 secret needs at least 32 bytes, this one has 28"],
    );
    fails(
        &check("[auth]\njwks = \"key\"\n"),
        2,
        &["key: not a usable key: not a JSON Web Key Set (`{\"keys\": [...]}`)"],
    );
    place.write("key", "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n");
    fails(
        &check(&key("ES256")),
        2,
        &[
            "key: not a usable key: a private key where the public one belongs; `openssl pkey -pubout` makes the public one",
        ],
    );
    place.write("key", "a secret that has more than thirty-two bytes\n");
    fails(
        &check(&(key("HS256") + &key("HS256"))),
        2,
        &[
            "`auth.keys` and `auth.jwks` do not fit together: of several keys at most one may be without `kid`; give the \
           others one",
        ],
    );
    let good = check(&key("HS256"));
    assert_eq!((good.code, good.out.as_str(), good.err.as_str()), (0, "the configuration is good\n", ""));
    // Neither a key nor a set: the data folder must have one.
    fails(
        &check("data = \"d\"\n"),
        2,
        &[
            "there is no key to check tokens with: run `throng keys generate --data d`, or name your issuer's key under \
           `auth.keys` in the configuration",
        ],
    );
    assert_eq!(check("data = \"d\"\ndev = true\n").code, 0);
}

#[test]
fn check_looks_at_the_data_folder_and_the_address() {
    let place = Place::new();
    place.write("key", "a secret that has more than thirty-two bytes\n");
    let check = |more: &str| {
        place.write("c.toml", format!("{more}\n[[auth.keys]]\nfile = \"key\"\nalgorithm = \"HS256\"\n"));
        place.run(&["config", "check", "--config", "c.toml"])
    };
    fails(&check("data = \"key\""), 2, &["key: is not a folder; `data` must name one, or one to be made"]);
    // An address that no machine has (RFC 5737).
    fails(
        &check("listen = \"192.0.2.1:8080\""),
        2,
        &[
            "`listen`: 192.0.2.1:8080 cannot be listened on: Cannot assign requested address (os error 99); choose an \
           address of this machine and a port above 1023",
        ],
    );
    // A port in use may be this very server's.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("its address");
    assert_eq!(check(&format!("listen = \"{address}\"")).code, 0);
}

#[test]
fn development_for_all_the_world_is_pointed_out() {
    let place = Place::new();
    place.write("c.toml", "dev = true\nlisten = \"0.0.0.0:0\"\n");
    let outcome = place.run(&["config", "check", "--config", "c.toml"]);
    assert_eq!(outcome.code, 0);
    assert_eq!(
        outcome.err,
        "throng: warning: --dev: development mode hands out identities, and 0.0.0.0:0 can be reached by others\n"
    );
}

#[test]
fn x7_no_secret_is_ever_shown() {
    let place = Place::new();
    let secret = "correct-horse-battery-staple-and-then-some";
    place.write("key", secret);
    place.write("c.toml", "[[auth.keys]]\nfile = \"key\"\nalgorithm = \"HS256\"\n");
    let pem = "-----BEGIN PRIVATE KEY-----\\nMC4CAQAwBQYDK2VwBCIEI\\n-----END PRIVATE KEY-----";
    place.write("pasted.toml", format!("[[auth.keys]]\nfile = \"{pem}\"\nalgorithm = \"EdDSA\"\n"));
    for arguments in [
        ["config", "show", "--config", "c.toml"],
        ["config", "check", "--config", "c.toml"],
        ["config", "check", "--config", "pasted.toml"],
    ] {
        let outcome = place.run(&arguments);
        let all = outcome.out + &outcome.err;
        assert!(!all.contains(secret) && !all.contains("MC4CAQAwBQYDK2VwBCIEI"), "{all}");
    }
}
