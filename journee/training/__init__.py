"""Training of targets and drafts: `scripts/train_target.py` and `scripts/train_draft.py` start here."""
