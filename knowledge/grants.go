package knowledge

import (
	"context"

	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Limits of grants.
const maxGrants = 200 // grants of a knowledge base

// Grants lists who else may use a knowledge base: all for its owner, for others their own.
//
// Errors: NotFound.
func (s *Service) Grants(ctx context.Context, userID, baseID string) ([]Grant, error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) ([]Grant, error) {
		b, err := tx.Base(baseID)
		if err != nil {
			return nil, err
		}
		return tx.Grants(b)
	})
}

// PutGrant lets another user, named by id or username, use an own knowledge base, or changes
// how. It holds from the next call on.
//
// Errors: Invalid for the role, and for the owner; NotFound for the knowledge base or the user;
// Forbidden for a knowledge base that is not the user's own; Conflict for more than 200 grants.
func (s *Service) PutGrant(ctx context.Context, c *op.Call, baseID, userID, role string) (*Grant, error) {
	var check op.Checks
	op.OneOf(&check, "role", role, []string{AccessRead, AccessWrite})
	if err := check.Err(); err != nil {
		return nil, err
	}
	return op.Once(ctx, s.store, c, func(tx Tx) (*Grant, error) {
		b, err := ownBase(tx, baseID)
		if err != nil {
			return nil, err
		}
		id, _, err := tx.Grantee(userID)
		if err != nil {
			return nil, err
		}
		if id == b.OwnerID {
			return nil, fault.InvalidField("userId", "value", "the owner needs no access")
		}
		if err := tx.PutGrant(b, &Grant{UserID: id, Role: role, GrantedBy: c.UserID}); err != nil {
			return nil, err
		}
		if err := tx.Audit(audit.Entry{Action: audit.GrantGiven, SubjectID: id, Object: b.ID, Detail: role}); err != nil {
			return nil, err
		}
		all, err := tx.Grants(b)
		if err != nil {
			return nil, err
		}
		if len(all) > maxGrants {
			return nil, fault.New(fault.Conflict, "a knowledge base may be shared with %d users", maxGrants)
		}
		if err := tx.Emit(baseUpdated(c, b)); err != nil {
			return nil, err
		}
		for i := range all {
			if all[i].UserID == id {
				return &all[i], nil
			}
		}
		return nil, fault.New(fault.NotFound, "no such user")
	})
}

// DeleteGrant takes the access of a user, named by id or username, to an own knowledge base
// back, or gives up one's own access. It holds from the next call on. The files that the user
// has added leave the knowledge base.
//
// Errors: NotFound for the knowledge base, the user or the grant; Forbidden for the grant of
// somebody else to a knowledge base that is not the user's own.
func (s *Service) DeleteGrant(ctx context.Context, c *op.Call, baseID, userID string) error {
	return op.Do(ctx, s.store, c, func(tx Tx) error {
		b, err := tx.Base(baseID)
		if err != nil {
			return err
		}
		id := userID
		if id != c.UserID {
			if id, _, err = tx.Grantee(userID); err != nil && b.Access == AccessOwner {
				return err
			}
		}
		if b.Access != AccessOwner && id != c.UserID {
			return fault.New(fault.Forbidden, "the knowledge base belongs to another user")
		}
		if err := tx.DropGrant(b, id); err != nil {
			return err
		}
		if err := tx.Audit(audit.Entry{Action: audit.GrantTaken, SubjectID: id, Object: b.ID}); err != nil {
			return err
		}
		if id == c.UserID {
			return tx.Emit(baseDeleted(c, b.ID))
		}
		return tx.Emit(baseUpdated(c, b))
	})
}
