import { words } from '../../../lib/language.svelte'

/** named are the counts that people know, by table, in words. */
const named = (counts: Record<string, number>, names: Record<string, (n: number) => string>, comma: string) =>
  Object.entries(names)
    .filter(([table]) => counts[table])
    .map(([table, name]) => name(counts[table]!))
    .join(comma)

const many = (one: string, more: string) => (n: number) => `${n} ${n === 1 ? one : more}`
const of = (name: string) => (n: number) => `${n} ${name}`

export const dataWords = words(
  {
    title: 'Your data',
    text: 'Everything of yours as one file: characters, chats with all branches, memories, documents, the circle and settings. You can bring it in on any server.',
    export: 'Export',
    import: 'Import…',
    secrets: 'Passwords, tokens and keys of providers are not in the file.',
    folder: 'Export for SillyTavern',
    folderText: 'The export for SillyTavern is its folder data/default-user. What it has no place for is in the folder NodeST.',
    sending: (percent: number) => `Uploading… ${percent} %`,
    reading: 'Reading the file…',
    list: (counts: Record<string, number>) =>
      named(
        counts,
        {
          characters: many('character', 'characters'),
          conversations: many('chat', 'chats'),
          messages: many('message', 'messages'),
          memories: many('memory', 'memories'),
          resources: many('book, preset or script', 'books, presets and scripts'),
          files: many('document', 'documents'),
          knowledge_bases: many('knowledge base', 'knowledge bases'),
          circle_posts: many('post', 'posts'),
          attachments: many('image', 'images'),
          research_runs: many('research', 'researches'),
          settings: () => 'settings',
        },
        ', ',
      ),
    wouldAdd: (list: string) => `The file would add: ${list}.`,
    added: (list: string) => `Added: ${list}.`,
    kept: (list: string) => `You have these already, and they stay as they are: ${list}.`,
    nothing: 'You have everything in this file already.',
    add: 'Add',
    show: 'Show',
    cancel: 'Cancel',
    delete: 'Delete account…',
    deleteTitle: 'Delete account',
    deleteText: 'Your account and everything of yours is removed from the server.',
    deleteWarning: 'All your characters, chats, memories, documents and images are deleted at once, and you are signed out everywhere. It cannot be undone: export your data first.',
    password: 'Your password',
    name: (name: string) => `Type the name of the account: ${name}`,
    wrongPassword: 'The password is wrong.',
    wrongName: 'That is not the name of the account.',
    lastOwner: 'You are the last owner of the server. Make somebody else an owner first.',
    deleteNow: 'Delete everything',
    deleting: 'Deleting…',
  },
  {
    title: '你的数据',
    text: '把你的全部内容导出为一个文件：角色、含所有分支的聊天、记忆、文档、圈子和设置，可在任何服务器上导入。',
    export: '导出',
    import: '导入…',
    secrets: '文件中不含密码、令牌和服务商密钥。',
    folder: '导出到 SillyTavern',
    folderText: '导出到 SillyTavern 的文件就是它的 data/default-user 文件夹；它没有位置存放的内容在 NodeST 文件夹中。',
    sending: (percent: number) => `正在上传… ${percent}%`,
    reading: '正在读取文件…',
    list: (counts: Record<string, number>) =>
      named(
        counts,
        {
          characters: of('个角色'),
          conversations: of('个聊天'),
          messages: of('条消息'),
          memories: of('条记忆'),
          resources: of('个世界书、预设或脚本'),
          files: of('个文档'),
          knowledge_bases: of('个知识库'),
          circle_posts: of('条动态'),
          attachments: of('张图片'),
          research_runs: of('次研究'),
          settings: () => '设置',
        },
        '、',
      ),
    wouldAdd: (list: string) => `导入后将新增：${list}。`,
    added: (list: string) => `已新增：${list}。`,
    kept: (list: string) => `以下内容已存在，保持不变：${list}。`,
    nothing: '文件中的内容你都已经有了。',
    add: '导入',
    show: '查看',
    cancel: '取消',
    delete: '删除账号…',
    deleteTitle: '删除账号',
    deleteText: '从服务器上移除你的账号和全部内容。',
    deleteWarning: '你的所有角色、聊天、记忆、文档和图片会立即删除，并在所有设备上退出登录。此操作无法撤销，请先导出数据。',
    password: '你的密码',
    name: (name: string) => `输入账号名称以确认：${name}`,
    wrongPassword: '密码不正确。',
    wrongName: '这不是该账号的名称。',
    lastOwner: '你是服务器的最后一位所有者，请先让其他人成为所有者。',
    deleteNow: '删除全部内容',
    deleting: '正在删除…',
  },
)
