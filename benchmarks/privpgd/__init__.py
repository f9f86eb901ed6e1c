"""The benchmark of the PrivPGD paper, reproduced: `make privpgd`."""
