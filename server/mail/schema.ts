/** API schemas of mail. */
import { namedObject, type Static, Type, textOrNull } from '../platform/json/json-schema.ts';

export const MailStatus = namedObject('MailStatus', {
  enabled: Type.Boolean({ description: 'Whether this cloud sends mail: CLOUDLET_SMTP_URL is set' }),
  server: textOrNull('Host and port of the mail server; null: none is set'),
  from: textOrNull('The sender of the mail'),
  pending: Type.Integer({ description: 'Mails that wait to be sent, or to be sent again' }),
  sent: Type.Integer({ description: 'In the last 30 days' }),
  failed: Type.Integer({ description: 'In the last 30 days' }),
});
export type MailStatus = Static<typeof MailStatus>;

export const Mail = namedObject('Mail', {
  id: Type.String({ description: 'mail-…; the part of its Message-ID before the @' }),
  to: Type.String(),
  kind: Type.String({ description: 'Such as `reset`, `invitation`, `credits`, `alarms` or `test`' }),
  state: Type.Enum(['pending', 'sent', 'failed'], {
    description: 'sent: the mail server has accepted the mail',
  }),
  reason: textOrNull('Why it failed, or the error of the last attempt'),
  tries: Type.Integer(),
  created_at: Type.String(),
  next_attempt_at: textOrNull('null: none'),
  ended_at: textOrNull('When it was sent or given up'),
});
export type Mail = Static<typeof Mail>;

export const TestMailBody = namedObject('NewTestMail', {
  to: Type.String({ maxLength: 254, description: 'An e-mail address', examples: ['ada@example.org'] }),
});
