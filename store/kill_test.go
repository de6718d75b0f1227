package store_test

const childEnv = "NODEST_STORE_CHILD"

func child() {}
