// The name that a fact of a memory gives the user.

// How rules and users word it.
const forms = [
  /^(?:the )?user(?:['’]s (?:full |real |first )?name is| is called| is named) (.+?)[.。]?$/i,
  /^(?:my name is|i am called|i['’]m called|call me) (.+?)[.。]?$/i,
  /^(?:用户|我)的?(?:名字|姓名)?(?:叫做?|名叫|名为|(?<=名字|姓名)是)\s*(?![他她它你您])(.+?)[.。]?$/,
]

/** nameIn returns the name that a fact gives the user; empty if it gives none. */
export function nameIn(fact: string): string {
  const name = forms.map((f) => f.exec(fact)?.[1]?.trim()).find(Boolean) ?? ''
  return name.length <= 40 && !/[,，;；:：!！?？]/.test(name) ? name : ''
}
