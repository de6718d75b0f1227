package circle

func emitRelation(tx Tx, by string, r *Relation) error { return nil }
func emitItem(tx Tx, by string, i *Item) error         { return nil }
func emitAction(tx Tx, by string, a *Action) error     { return nil }
