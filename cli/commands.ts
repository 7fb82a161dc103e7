/** The table of commands, by topic. */
import { ACCOUNT_COMMANDS } from './account-commands.ts';
import type { Command } from './command.ts';
import { generalCommands } from './general-commands.ts';
import type { Topic } from './help.ts';

export const TOPICS: readonly Topic[] = [
  { title: 'Account', commands: ACCOUNT_COMMANDS },
  { title: 'Client', commands: generalCommands(() => TOPICS) },
];

export const COMMANDS: readonly Command[] = TOPICS.flatMap(({ commands }) => commands);
