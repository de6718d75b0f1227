package account

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// sealer encrypts provider keys with AES-256-GCM. The user and the provider are
// authenticated with the text, so that a sealed key cannot be moved to another row.
type sealer struct{ aead cipher.AEAD }

func newSealer(secret []byte) (*sealer, error) {
	if len(secret) != 32 {
		return nil, fmt.Errorf("account: the secret must be 32 bytes, not %d", len(secret))
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &sealer{aead}, err
}

func (s *sealer) seal(plain, bound string) []byte {
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return s.aead.Seal(nonce, nonce, []byte(plain), []byte(bound))
}

func (s *sealer) open(sealed []byte, bound string) (string, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return "", errors.New("account: sealed key is too short")
	}
	plain, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(bound))
	return string(plain), err
}

// Opens says whether a secret opens a provider key as it is stored.
func Opens(secret []byte, userID, provider string, sealed []byte) bool {
	s, err := newSealer(secret)
	if err == nil {
		_, err = s.open(sealed, userID+"/"+provider)
	}
	return err == nil
}

// SetProviderKey stores the user's own key (or comma list of keys) of a provider.
func (s *Service) SetProviderKey(ctx context.Context, userID, provider, key string) error {
	key = strings.TrimSpace(key)
	if key == "" {
		return fault.InvalidField("key", "range", "must be 1 to 4096 bytes")
	}
	if err := checkKey(key); err != nil {
		return err
	}
	return s.store.PutProviderKey(ctx, userID, &SealedKey{
		Provider: provider, Sealed: s.seal.seal(key, userID+"/"+provider), UpdatedAt: s.now(),
	}, keyNote(audit.KeyChanged, userID, provider))
}

func checkKey(key string) error {
	if len(key) > 4096 {
		return fault.InvalidField("key", "range", "must have at most 4096 bytes")
	}
	for _, c := range []byte(key) {
		if c < ' ' || c > '~' { // a header cannot hold it
			return fault.InvalidField("key", "encoding", "must be printable ASCII characters")
		}
	}
	return nil
}

// DeleteProviderKey forgets the user's own key; fault.NotFound without one.
func (s *Service) DeleteProviderKey(ctx context.Context, userID, provider string) error {
	return s.store.DeleteProviderKey(ctx, userID, provider, keyNote(audit.KeyRemoved, userID, provider))
}

func keyNote(action audit.Action, userID, provider string) *audit.Entry {
	return &audit.Entry{Action: action, ActorID: userID, SubjectID: userID, Object: op.Truncate(provider, 64)}
}

// ProviderKeys returns the user's own keys by provider. A key that was sealed
// under another secret is left out and reported in the log.
func (s *Service) ProviderKeys(ctx context.Context, userID string) (map[string]string, error) {
	rows, err := s.store.ProviderKeys(ctx, userID)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]string, len(rows))
	for _, k := range rows {
		plain, err := s.seal.open(k.Sealed, userID+"/"+k.Provider)
		if err != nil {
			s.opts.Log.ErrorContext(ctx, "stored provider key cannot be decrypted; was NODEST_SECRET_KEY changed?", "provider", k.Provider)
			continue
		}
		keys[k.Provider] = plain
	}
	return keys, nil
}

// Secret returns the 32 bytes that seal provider keys: derived from configured
// if it is not empty, else read from dir/secret.key, which is made with mode
// 0600 when it does not exist.
func Secret(dir, configured string) ([]byte, error) {
	if configured != "" {
		sum := sha256.Sum256([]byte(configured))
		return sum[:], nil
	}
	path := filepath.Join(dir, "secret.key")
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		text, err = makeSecret(path)
	}
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) != 32 {
		return nil, fmt.Errorf("%s is damaged: it must contain 64 hexadecimal digits", path)
	}
	return secret, nil
}

// makeSecret writes a new secret; of two processes that try, one wins and both
// read its secret.
func makeSecret(path string) ([]byte, error) {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	tmp, err := os.CreateTemp(filepath.Dir(path), "secret-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // CreateTemp makes it with mode 0600
	_, err = fmt.Fprintln(tmp, hex.EncodeToString(b))
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}
