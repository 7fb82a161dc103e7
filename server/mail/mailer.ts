/** Passes one mail to the operator's server; the implementation is in drivers/. */

export interface OutgoingMail {
  /** Stays the same at each attempt, so that receivers recognize a repetition. */
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
   * Resolves once the server has accepted the mail. Rejects with MailRefused if it never will, and
   * with another error, whose message is for the operator, if it may later; also when `signal` was
   * aborted. Never takes longer than a minute.
   */
  send(mail: OutgoingMail, signal: AbortSignal): Promise<void>;
}

/** The server accepts no mail for this address. */
export class MailRefused extends Error {}
