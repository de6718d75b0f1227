package circle

// Wire formats. Owner: the helper of posts and operations.
func (svc *Service) wirePost(_ Tx, p *Post) any       { return p }
func (svc *Service) wireComment(_ Tx, c *Comment) any { return c }
func (svc *Service) wireLike(_ Tx, l *Like) any       { return l }
