"""Why did the network say A, not B? A word and a moving region, for any PyTorch video classifier."""

__version__ = "0.1.0.dev0"
