import { words } from '../../lib/language.svelte'

export const characterWords = words(
  {
    characters: 'Characters',
    text: 'Characters that are switched on search and read this knowledge base by themselves. Changes are stored at once.',
    has: (name: string) => `${name} has this knowledge base`,
    none: 'You have no characters yet.',
    all: 'All characters',
  },
  {
    characters: '角色',
    text: '开启的角色会自行搜索和阅读此知识库。更改会立即保存。',
    has: (name: string) => `${name} 使用此知识库`,
    none: '你还没有角色。',
    all: '全部角色',
  },
)
