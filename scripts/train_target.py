"""Train a target: python scripts/train_target.py --config configs/tiny_target.toml"""

from journee.training.command import command

if __name__ == "__main__":
    command("target")()
