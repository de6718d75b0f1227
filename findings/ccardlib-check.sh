#!/usr/bin/env bash
# @risuai/ccardlib 0.4.2 (newest), 2026-11.
# One would guess, and its README says: check() tells whether a card is valid, so a card of version 3
# that lacks one required list is "v3" or "unknown". In fact the schemas are tried from 3 down to 1,
# and that of version 1 looks at nothing but the six old members. Cards of SillyTavern repeat these at
# the top level: one of them without group_only_greetings is "v1". convert() believes that and makes a
# valid card of the top level alone: the system prompt, further greetings and the author are gone, and
# no error is raised. A number as text, as in the id of an entry, has the same effect.
# Here: an exported card has every member that its version requires, in the required type.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @risuai/ccardlib@0.4.2
cat >check.mjs <<'JS'
import { CCardLib } from '@risuai/ccardlib'
const old = { name: 'Mira', description: 'A keeper.', personality: '', scenario: '', first_mes: 'Hello.', mes_example: '' }
const data = {
  ...old, creator_notes: '', system_prompt: 'Write as Mira.', post_history_instructions: '', alternate_greetings: ['Good evening.'],
  tags: [], creator: 'A. Author', character_version: '', extensions: {}, group_only_greetings: [],
}
const whole = { spec: 'chara_card_v3', spec_version: '3.0', ...old, data }
const less = structuredClone(whole)
delete less.data.group_only_greetings
const is = (card) => CCardLib.character.check(structuredClone(card))
const converted = CCardLib.character.convert(structuredClone(less), { to: 'v3' })
console.log('@risuai/ccardlib 0.4.2')
console.log('a card of version 3:', is(whole))
console.log('the same without group_only_greetings:', is(less))
console.log('the same without the top level, too:', is({ spec: less.spec, spec_version: less.spec_version, data: less.data }))
const { system_prompt, alternate_greetings, creator } = converted.data
console.log('converted to version 3:', JSON.stringify({ system_prompt, alternate_greetings, creator }))
const known = is(whole) === 'v3' && is(less) === 'v1' && system_prompt === '' && alternate_greetings.length === 0 && creator === 'Unknown'
console.log(known ? 'A card that lacks one list becomes a card of version 1, and its texts are lost.' : 'The behaviour has changed.')
process.exit(known ? 0 : 1)
JS
node check.mjs
