"""What spark-submit runs: `headwater pipeline run`, with the same flags."""

import sys

from headwater.cli import main

if __name__ == "__main__":
    sys.exit(main(["pipeline", "run", *sys.argv[1:]]))
