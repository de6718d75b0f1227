// The outcome of imports, and the question which character or chat a file is for.

export interface Added {
  file: string
  kind: string
  name: string
  /** Its address; empty = it has none. */
  to: string
  warnings: string[]
  /** Why it was not imported; empty = it was. */
  problem: string
  /** Tries again, if that can help. */
  again?: () => void
}

export interface Question {
  file: string
  kind: string
  field: 'characterId' | 'conversationId'
  /** The name of the character in the file. */
  named: string
}

/** anew answers that a character is made for the file. */
export const anew = 'new'

let results = $state.raw<Added[]>([])
let question = $state.raw<(Question & { answer: (id: string) => void }) | null>(null)

export const added = {
  get results() {
    return results
  },
  get question() {
    return question
  },
  /** show adds to what is shown already. */
  show(list: Added[]) {
    results = [...results, ...list]
  },
  /** drop takes away one that is tried again. */
  drop(one: Added) {
    results = results.filter((other) => other !== one)
  },
  close() {
    results = []
  },
  /** ask yields the id that the user chooses; empty = the file is left out, anew = a character is made. */
  ask(q: Question): Promise<string> {
    return new Promise((done) => {
      question = {
        ...q,
        answer: (id) => {
          question = null
          done(id)
        },
      }
    })
  },
}
