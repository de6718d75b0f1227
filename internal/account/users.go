package account

import (
	"cmp"
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"

	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/password"
)

// NewUser is what an owner gives for a new account.
type NewUser struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Role     string `json:"role"` // "" = member
	Limits   Limits `json:"limits"`
}

// UserPatch changes the members that are not nil.
type UserPatch struct {
	Password        *string      `json:"password"`
	CurrentPassword *string      `json:"currentPassword"` // to change one's own, if there is one
	Role            *string      `json:"role"`
	Limits          *LimitsPatch `json:"limits"`
}

// LimitsPatch changes the limits that are not nil.
type LimitsPatch struct {
	TokensPerDay *int64   `json:"tokensPerDay"`
	Generations  *int     `json:"generations"`
	Bytes        *int64   `json:"bytes"`
	MonthlyUSD   *float64 `json:"usdPerMonth"`
}

// limits are those of u with the changes of p.
func (p *UserPatch) limits(u *User) Limits {
	l := u.Limits
	if c := p.Limits; c != nil {
		l = Limits{*cmp.Or(c.TokensPerDay, &l.TokensPerDay), *cmp.Or(c.Generations, &l.Generations), *cmp.Or(c.Bytes, &l.Bytes), *cmp.Or(c.MonthlyUSD, &l.MonthlyUSD)}
	}
	return l
}

// CreateUser makes an account. by must be an owner; nil = the command line.
func (s *Service) CreateUser(ctx context.Context, by *User, in NewUser) (*User, error) {
	if err := onlyOwner(by); err != nil {
		return nil, err
	}
	name := strings.TrimSpace(in.Username)
	if n := utf8.RuneCountInString(name); n < 1 || n > 64 {
		return nil, fault.InvalidField("username", "range", "must be 1 to 64 characters, not %d", n)
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return nil, fault.InvalidField("username", "encoding", "must not contain control characters")
	}
	u := &User{ID: op.NewID(), Username: name, Role: in.Role, Limits: in.Limits, CreatedAt: s.now()}
	u.Role = cmp.Or(u.Role, RoleMember)
	if err := s.complete(ctx, u, &in.Password); err != nil {
		return nil, err
	}
	if err := s.store.InsertUser(ctx, u, &audit.Entry{Action: audit.UserCreated, ActorID: idOf(by), SubjectID: u.ID, Detail: u.Role}); err != nil {
		return nil, err
	}
	return u, nil
}

// UpdateUser changes an account: any as an owner, and everybody their own
// password. A new role, or a password that somebody else has set, ends all tokens
// of the account; a new password of one's own ends the other sessions.
func (s *Service) UpdateUser(ctx context.Context, by *Identity, id string, p UserPatch) (*User, error) {
	u, err := s.mayUpdate(ctx, by, id, p)
	if err != nil {
		return nil, err
	}
	wanted := &User{Username: u.Username, Role: *cmp.Or(p.Role, &u.Role), Limits: p.limits(u)}
	if err := s.complete(ctx, wanted, p.Password); err != nil {
		return nil, err
	}
	newRole, notes := false, p.notes(by.User.ID, id)
	u, err = s.store.UpdateUser(ctx, id, func(u *User, all []*User) error {
		before := *u
		if newRole = p.Role != nil && *p.Role != u.Role; newRole {
			if err := keepsAnOwner(u, all); err != nil {
				return err
			}
			u.Role = wanted.Role
		}
		u.Limits = p.limits(u)
		if p.Password != nil {
			u.PasswordHash = wanted.PasswordHash
		}
		notes.complete(&before, u)
		return nil
	}, notes...)
	if err != nil {
		return nil, err
	}
	switch {
	case newRole, p.Password != nil && by.User.ID != id:
		err = s.endTokens(ctx, id, func(*Token) bool { return true })
		s.tell(id, "")
	case p.Password != nil: // the session in use stays, and every token that was made on purpose
		err = s.endTokens(ctx, id, func(t *Token) bool { return t.Session && t.ID != by.TokenID })
	}
	return u, err
}

// userNotes tell the audit log of a changed account.
type userNotes []*audit.Entry

// notes are those of the changes of p, which somebody makes to an account.
func (p *UserPatch) notes(by, id string) (notes userNotes) {
	for _, change := range []struct {
		action audit.Action
		given  bool
	}{{audit.PasswordChanged, p.Password != nil}, {audit.RoleChanged, p.Role != nil}, {audit.LimitsChanged, p.Limits != nil}} {
		if change.given {
			notes = append(notes, &audit.Entry{Action: change.action, ActorID: by, SubjectID: id})
		}
	}
	return notes
}

// complete tells what has changed. What is the same as before is not noted.
func (n userNotes) complete(before, now *User) {
	for _, e := range n {
		var was, is string
		switch e.Action {
		case audit.RoleChanged:
			was, is = before.Role, now.Role
		case audit.LimitsChanged:
			was, is = before.Limits.String(), now.Limits.String()
		default:
			continue
		}
		if e.Detail = is; was == is {
			e.Action = ""
		}
	}
}

// mayUpdate returns the account with an id, if by may make these changes to it.
func (s *Service) mayUpdate(ctx context.Context, by *Identity, id string, p UserPatch) (*User, error) {
	own := by.User.ID == id
	if !own || p.Role != nil || p.Limits != nil {
		if err := onlyOwner(by.User); err != nil {
			return nil, err
		}
	}
	u, err := s.store.User(ctx, id)
	if err != nil {
		return nil, err
	}
	// The admin token stands above passwords: it is the way back for an owner who
	// has forgotten theirs.
	if own && by.TokenID != "" && p.Password != nil && u.PasswordHash != "" {
		err = s.knowsPassword(ctx, u, p.CurrentPassword)
	}
	return u, err
}

// Alone returns an identity whose tokens and links do not end with the token of by. It needs
// the current password of the user, so that a stolen token cannot be used to make a lasting
// one. Without a password (nil) it returns by unchanged.
//
// Errors: Invalid (field currentPassword) if the password is wrong or the user has none.
func (s *Service) Alone(ctx context.Context, by *Identity, password *string) (*Identity, error) {
	if password == nil {
		return by, nil
	}
	u, err := s.store.User(ctx, by.User.ID)
	if err != nil {
		return nil, err
	}
	if u.PasswordHash == "" {
		return nil, fault.InvalidField("currentPassword", "wrong", "the account has no password")
	}
	if err := s.knowsPassword(ctx, u, password); err != nil {
		return nil, err
	}
	return &Identity{User: u}, nil
}

// knowsPassword checks the current password of somebody who is signed in.
// Guessing it is limited as signing in is.
func (s *Service) knowsPassword(ctx context.Context, u *User, password *string) error {
	if password == nil {
		return fault.InvalidField("currentPassword", "required", "required: the current password")
	}
	done, err := s.tries.try(u.ID, "")
	if err != nil {
		return err
	}
	ok, err := s.compare(ctx, *password, u.PasswordHash)
	switch {
	case err != nil:
		done(undecided)
		return err
	case !ok:
		done(failed)
		s.Note(ctx, &audit.Entry{Action: audit.PasswordWrong, ActorID: u.ID, SubjectID: u.ID})
		return fault.InvalidField("currentPassword", "wrong", "the current password is wrong")
	}
	done(succeeded)
	return nil
}

// endTokens ends the tokens of a user that ends selects, and the links that could make
// one.
func (s *Service) endTokens(ctx context.Context, userID string, ends func(*Token) bool) error {
	tokens, err := s.store.Tokens(ctx, userID)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if !ends(t) {
			continue
		}
		if err := s.endToken(ctx, userID, t.ID); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return s.store.DeleteTickets(ctx, userID, PurposeSignIn)
}

// DeleteUser removes an account and everything that belongs to it.
func (s *Service) DeleteUser(ctx context.Context, by *User, id string) error {
	if err := onlyOwner(by); err != nil {
		return err
	}
	return s.remove(ctx, id, idOf(by))
}

// DeleteMe removes the account of by and everything that belongs to it. It needs the current password, so that a
// stolen token cannot do it; an account without one is confirmed by its name, also with the admin token.
//
// Errors: Invalid for what confirms; Conflict for the last owner.
func (s *Service) DeleteMe(ctx context.Context, by *Identity, password *string, username string) error {
	u, err := s.store.User(ctx, by.User.ID)
	if err != nil {
		return err
	}
	if by.TokenID != "" && u.PasswordHash != "" {
		err = s.knowsPassword(ctx, u, password)
	} else if !strings.EqualFold(strings.TrimSpace(username), u.Username) {
		err = fault.InvalidField("username", "wrong", "must be the name of the account, because it has no password")
	}
	if err != nil {
		return err
	}
	return s.remove(ctx, u.ID, u.ID)
}

// remove removes an account. Its tokens, connections and work end before its data goes, which may take long.
func (s *Service) remove(ctx context.Context, id, byID string) error {
	note := &audit.Entry{Action: audit.UserDeleted, ActorID: byID, SubjectID: id}
	return s.store.DeleteUser(ctx, id, keepsAnOwner, func(ended []*Token) {
		s.tellEnded(ended)
		s.tell(id, "")
		s.opts.Left(id)
	}, note)
}

// Quotas returns what a user has stored, by kind: bytes, messages, conversations and others.
func (s *Service) Quotas(ctx context.Context, userID string) (map[string]Quota, error) {
	return s.store.Quotas(ctx, userID)
}

// Users lists the accounts by username; limit is 1 to 200, 0 = 50.
func (s *Service) Users(ctx context.Context, by *User, cursor string, limit int) (*op.Page[*User], error) {
	if err := onlyOwner(by); err != nil {
		return nil, err
	}
	limit, err := op.CheckLimit(limit)
	if err != nil {
		return nil, err
	}
	items, next, err := s.store.UserPage(ctx, cursor, limit)
	return &op.Page[*User]{Items: items, NextCursor: next}, err
}

// idOf is the id of a user; "" for the command line.
func idOf(u *User) string {
	if u == nil {
		return ""
	}
	return u.ID
}

// AuditLog lists the audit log, newest first; limit is 1 to 200, 0 = 50.
func (s *Service) AuditLog(ctx context.Context, by *User, f audit.Filter, cursor string, limit int) (*op.Page[*audit.Record], error) {
	if by.Role != RoleOwner {
		return nil, fault.New(fault.Forbidden, "only an owner can read the audit log")
	}
	limit, err := op.CheckLimit(limit)
	if err = cmp.Or(err, f.Check()); err != nil {
		return nil, err
	}
	items, next, err := s.store.AuditPage(ctx, f, cursor, limit)
	return &op.Page[*audit.Record]{Items: items, NextCursor: next}, err
}

func onlyOwner(by *User) error {
	if by != nil && by.Role != RoleOwner {
		return fault.New(fault.Forbidden, "only an owner can manage users")
	}
	return nil
}

// complete checks the changeable members of u and hashes the password if one is given.
func (s *Service) complete(ctx context.Context, u *User, text *string) error {
	if u.Role != RoleOwner && u.Role != RoleMember {
		return fault.InvalidField("role", "value", "must be owner or member, not %q", u.Role)
	}
	if l := u.Limits; l.TokensPerDay < 0 || l.Generations < 0 || l.Bytes < 0 || l.MonthlyUSD < 0 {
		return fault.InvalidField("limits", "range", "must not be negative (0: the server's default)")
	}
	if text == nil {
		return nil
	}
	if err := password.Check(*text, u.Username); err != nil {
		return err
	}
	return s.hash.do(ctx, func() (err error) {
		u.PasswordHash, err = argon2id.CreateHash(password.Normal(*text), s.opts.Password)
		return err
	})
}

// keepsAnOwner refuses to take away the last owner.
func keepsAnOwner(u *User, all []*User) error {
	if u.Role != RoleOwner {
		return nil
	}
	for _, other := range all {
		if other.Role == RoleOwner && other.ID != u.ID {
			return nil
		}
	}
	return fault.New(fault.Conflict, "the last owner cannot be removed or demoted")
}
