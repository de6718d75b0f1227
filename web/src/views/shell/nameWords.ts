import { words } from '../../lib/language.svelte'

export const nameWords = words(
  {
    ask: 'What should your characters call you?',
    learnt: (name: string) => `Should your characters call you ${name}?`,
    name: 'Your name',
    save: 'Use this name',
    later: 'Not now',
    stored: (name: string) => `Your characters call you ${name} now. You can change it in the settings.`,
  },
  {
    ask: '角色该怎么称呼你？',
    learnt: (name: string) => `让角色叫你“${name}”，好吗？`,
    name: '你的名字',
    save: '就用这个名字',
    later: '以后再说',
    stored: (name: string) => `角色现在会叫你“${name}”。可以在设置中修改。`,
  },
)
