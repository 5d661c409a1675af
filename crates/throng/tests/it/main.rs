//! The binary as a person meets it: what it prints, where, and how it ends; and as clients meet it, over the wire.

mod configuration;
mod database;
mod ending;
mod faults_disk;
mod faults_machine;
mod keys;
mod load;
mod lying;
mod neighbours;
mod network;
mod operating;
mod refusing;
mod report;
mod restarting;
mod sample;
mod seeding;
mod serving;
mod usage;

use torture::{chance, client, faults, kill, proxy, run, server, traffic};
