/** The table of commands, by topic. */

import type { Command } from './command.ts';
import { ACCOUNT_COMMANDS } from './commands/account-commands.ts';
import { API_COMMAND } from './commands/api-command.ts';
import { AUDIT_COMMANDS } from './commands/audit-commands.ts';
import { BILLING_COMMANDS } from './commands/billing-commands.ts';
import { CHOICE_COMMANDS } from './commands/choice-commands.ts';
import { EXPORT_COMMAND } from './commands/export-commands.ts';
import { generalCommands } from './commands/general-commands.ts';
import { IMAGE_COMMANDS } from './commands/image-commands.ts';
import { MACHINE_COMMANDS } from './commands/machine-commands.ts';
import { MAIL_COMMANDS } from './commands/mail-commands.ts';
import { PEOPLE_COMMANDS } from './commands/people-commands.ts';
import { PORT_COMMANDS } from './commands/port-commands.ts';
import { RECOVERY_COMMANDS } from './commands/recovery-commands.ts';
import { RESOURCE_COMMANDS } from './commands/resource-commands.ts';
import { SSH_KEY_COMMANDS } from './commands/ssh-key-commands.ts';
import { WEBHOOK_COMMANDS } from './commands/webhook-commands.ts';
import { BROWSE_COMMANDS } from './files/browse-commands.ts';
import { COPY_COMMANDS } from './files/copy-commands.ts';
import { REMOVE_COMMAND } from './files/remove-command.ts';
import { SHARE_COMMANDS } from './files/share-commands.ts';
import { SYNC_COMMAND } from './files/sync-command.ts';
import { VERSION_COMMANDS } from './files/version-commands.ts';
import type { Topic } from './help.ts';
import { DATABASE_TUNNEL_COMMANDS } from './tunnels/db-commands.ts';
import { VM_TUNNEL_COMMANDS } from './tunnels/vm-commands.ts';

export const TOPICS: readonly Topic[] = [
  { title: 'Account', commands: [...ACCOUNT_COMMANDS, ...BILLING_COMMANDS, EXPORT_COMMAND] },
  {
    title: 'Files',
    commands: [
      ...COPY_COMMANDS,
      REMOVE_COMMAND,
      SYNC_COMMAND,
      ...BROWSE_COMMANDS,
      ...VERSION_COMMANDS,
      ...SHARE_COMMANDS,
    ],
  },
  {
    title: 'Machines, databases, buckets and keys',
    commands: [
      ...RESOURCE_COMMANDS,
      ...MACHINE_COMMANDS,
      ...SSH_KEY_COMMANDS,
      ...CHOICE_COMMANDS,
      ...PORT_COMMANDS,
      ...WEBHOOK_COMMANDS,
      API_COMMAND,
    ],
  },
  { title: 'People, for administrators', commands: [...PEOPLE_COMMANDS, ...MAIL_COMMANDS] },
  { title: 'Images, for administrators', commands: IMAGE_COMMANDS },
  { title: 'Audit log', commands: AUDIT_COMMANDS },
  { title: 'Recovery points, for administrators', commands: RECOVERY_COMMANDS },
  {
    title: 'Connections to machines and databases',
    commands: [...VM_TUNNEL_COMMANDS, ...DATABASE_TUNNEL_COMMANDS],
  },
  { title: 'Client', commands: generalCommands(() => TOPICS) },
];

export const COMMANDS: readonly Command[] = TOPICS.flatMap(({ commands }) => commands);
