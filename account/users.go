package account

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"

	"nodest/fault"
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
	Password *string `json:"password"`
	Role     *string `json:"role"`
	Limits   *Limits `json:"limits"`
}

// CreateUser makes an account. by must be an owner; nil = the command line.
func (s *Service) CreateUser(ctx context.Context, by *User, in NewUser) (*User, error) {
	if err := onlyOwner(by); err != nil {
		return nil, err
	}
	name := strings.TrimSpace(in.Username)
	if n := utf8.RuneCountInString(name); n < 1 || n > 64 {
		return nil, fault.InvalidField("username", "range", "1 to 64 characters, not %d", n)
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return nil, fault.InvalidField("username", "encoding", "must not hold control characters")
	}
	u := &User{ID: newID(), Username: name, Role: in.Role, Limits: in.Limits, CreatedAt: s.now()}
	if u.Role == "" {
		u.Role = RoleMember
	}
	if err := s.complete(ctx, u, &in.Password); err != nil {
		return nil, err
	}
	if err := s.store.InsertUser(ctx, u); err != nil {
		return nil, err
	}
	return u, nil
}

// UpdateUser changes an account; a new password or role ends all its tokens.
func (s *Service) UpdateUser(ctx context.Context, by *User, id string, p UserPatch) (*User, error) {
	if err := onlyOwner(by); err != nil {
		return nil, err
	}
	u, err := s.store.User(ctx, id)
	if err != nil {
		return nil, err
	}
	if p.Role != nil && *p.Role != u.Role {
		if err := s.keepsAnOwner(ctx, u); err != nil {
			return nil, err
		}
		u.Role = *p.Role
	}
	if p.Limits != nil {
		u.Limits = *p.Limits
	}
	if err := s.complete(ctx, u, p.Password); err != nil {
		return nil, err
	}
	if err := s.store.UpdateUser(ctx, u); err != nil {
		return nil, err
	}
	if p.Password != nil || p.Role != nil {
		return u, s.revokeAll(ctx, u.ID)
	}
	return u, nil
}

// DeleteUser removes an account and everything that belongs to it.
func (s *Service) DeleteUser(ctx context.Context, by *User, id string) error {
	if err := onlyOwner(by); err != nil {
		return err
	}
	u, err := s.store.User(ctx, id)
	if err != nil {
		return err
	}
	if err := s.keepsAnOwner(ctx, u); err != nil {
		return err
	}
	if err := s.store.DeleteUser(ctx, id); err != nil {
		return err
	}
	s.tell(id, "")
	return nil
}

// Users lists all accounts by username.
func (s *Service) Users(ctx context.Context, by *User) ([]*User, error) {
	if err := onlyOwner(by); err != nil {
		return nil, err
	}
	return s.store.Users(ctx)
}

// UserByName finds an account; it is for the command line.
func (s *Service) UserByName(ctx context.Context, username string) (*User, error) {
	return s.store.UserByName(ctx, strings.ToLower(strings.TrimSpace(username)))
}

func onlyOwner(by *User) error {
	if by != nil && by.Role != RoleOwner {
		return fault.New(fault.Forbidden, "only an owner may manage users")
	}
	return nil
}

// complete checks the changeable members of u and hashes the password if one is given.
func (s *Service) complete(ctx context.Context, u *User, password *string) error {
	if u.Role != RoleOwner && u.Role != RoleMember {
		return fault.InvalidField("role", "value", "owner or member, not %q", u.Role)
	}
	if u.Limits.TokensPerDay < 0 || u.Limits.Generations < 0 {
		return fault.InvalidField("limits", "range", "must not be negative (0 = the server's default)")
	}
	if password == nil {
		return nil
	}
	if n := utf8.RuneCountInString(*password); n < 8 || n > 200 {
		return fault.InvalidField("password", "range", "8 to 200 characters, not %d", n)
	}
	select {
	case s.hash <- struct{}{}:
		defer func() { <-s.hash }()
	case <-ctx.Done():
		return ctx.Err()
	}
	hash, err := argon2id.CreateHash(*password, s.opts.Password)
	u.PasswordHash = hash
	return err
}

// keepsAnOwner refuses to take away the last owner.
func (s *Service) keepsAnOwner(ctx context.Context, u *User) error {
	if u.Role != RoleOwner {
		return nil
	}
	users, err := s.store.Users(ctx)
	if err != nil {
		return err
	}
	for _, other := range users {
		if other.Role == RoleOwner && other.ID != u.ID {
			return nil
		}
	}
	return fault.New(fault.Conflict, "this is the last owner")
}

func (s *Service) revokeAll(ctx context.Context, userID string) error {
	tokens, err := s.store.Tokens(ctx, userID)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if err := s.store.DeleteToken(ctx, userID, t.ID); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	s.tell(userID, "")
	return nil
}
