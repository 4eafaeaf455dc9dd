import Glibc

exit(Bench.main(Array(CommandLine.arguments.dropFirst())))
