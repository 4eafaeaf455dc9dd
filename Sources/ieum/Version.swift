/// This program's version.
let ieumVersion = "0.1.0"
