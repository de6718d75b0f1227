// Reads lines {"name", "spec", "card"} and prints one for each card that the libraries of the
// formats do not take for that version. Argument: the folder with node_modules.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const require = createRequire(process.argv[2] + '/')
const { CCardLib } = require('@risuai/ccardlib')
const { v2 } = require('character-card-utils')

let checked = 0
for await (const line of createInterface({ input: process.stdin })) {
  const { name, spec, card } = JSON.parse(line)
  checked++
  const is = CCardLib.character.check(structuredClone(card))
  if (is !== spec) console.log(`${name}: @risuai/ccardlib says ${is}, want ${spec}`)
  if (spec === 'v2') {
    const result = v2.safeParse(card)
    if (!result.success) console.log(`${name}: character-card-utils: ${JSON.stringify(result.error.issues.slice(0, 3))}`)
    continue
  }
  const back = CCardLib.character.convert(structuredClone(card), { to: 'v2' })
  for (const key of ['name', 'system_prompt', 'first_mes'])
    if (back.data[key] !== card.data[key]) console.log(`${name}: ${key} is lost when it is converted to V2`)
  if (card.data.character_book && back.data.character_book?.entries.length !== card.data.character_book.entries.length)
    console.log(`${name}: entries of the book are lost when it is converted to V2`)
}
console.error(`${checked} cards checked`)
