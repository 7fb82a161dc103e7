/** Hands one mail to a server of the operator's choice; the implementation is in drivers/. */

export interface OutgoingMail {
  /** The same at each attempt, so that receivers can tell a repeated one. */
  readonly messageId: string;
  /** One address. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

export interface Mailer {
  /** Host and port of the server, for messages. */
  readonly server: string;
  /**
   * Resolves once the server has taken the mail. Rejects with MailRefused when it never will, and with
   * another error, whose message is for the operator, when it may later; also when `signal` was aborted.
   * Never takes longer than a minute.
   */
  send(mail: OutgoingMail, signal: AbortSignal): Promise<void>;
}

/** The server takes no mail for this address. */
export class MailRefused extends Error {}
