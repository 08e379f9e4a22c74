"""Train a draft: python scripts/train_draft.py --config configs/tiny_draft.toml"""

from journee.training.command import command

if __name__ == "__main__":
    command("draft")()
