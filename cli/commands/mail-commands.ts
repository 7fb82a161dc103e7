/** The mail of the cloud. For administrators only; the cloud refuses others. */
import type { Mail } from '../../sdk/index.ts';
import type { Command } from '../command.ts';
import { all } from '../resources.ts';

export const MAIL_COMMANDS: readonly Command[] = [
  {
    name: 'mail status',
    words: '',
    summary: 'show whether the cloud sends mail, and how many mails are waiting',
    run: async ({ session, output }) => {
      const mail = await session().cloud.adminGetMail();
      output.one(mail, () =>
        mail.enabled
          ? [
              `Sent through ${mail.server}, from ${mail.from}`,
              `Last 30 days: ${mail.sent} sent, ${mail.failed} failed; ${mail.pending} waiting`,
            ]
          : ['This cloud sends no mail: CLOUDLET_SMTP_URL is not set'],
      );
    },
  },
  {
    name: 'mail test',
    words: 'ADDRESS',
    summary: 'send a test mail; "mail ls" shows the result',
    run: async ({ session, output, words: [to = ''] }) => {
      const mail = await session().cloud.adminSendTestMail({ to });
      output.one(mail, () => [`${mail.id} is queued for ${mail.to}`]);
    },
  },
  {
    name: 'mail ls',
    words: '',
    summary: 'list the mail of the last 30 days, newest first',
    run: async ({ session, output }) => {
      const mails = await all(session().cloud.adminListMails());
      output.table(mails, ['TO', 'ABOUT', 'STATE', 'TRIES', 'CREATED', 'REASON'], (mail: Mail) => [
        mail.to,
        mail.kind,
        mail.state,
        String(mail.tries),
        mail.created_at,
        mail.reason ?? '',
      ]);
    },
  },
];
