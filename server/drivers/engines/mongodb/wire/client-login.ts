/** Login of one connection: saslStart and saslContinue, also inside `hello`. */
import { Binary, type Document } from 'bson';
import { CommandError } from '../../../../../libs/mongo/index.ts';
import { type ClientFirst, readClientFirst, ScramConversation } from './scram-conversation.ts';
import type { Login } from './tenant-logins.ts';

const MECHANISM = 'SCRAM-SHA-256';
const CONVERSATION_ID = 1;
/** Maximum failures before the connection must be reopened. */
const MAX_FAILURES = 5;

interface Conversation {
  readonly scram: ScramConversation;
  readonly login: Login;
  readonly skipsEmpty: boolean;
  /** The password was correct; only an empty message of the client is missing. */
  isProven: boolean;
}

export interface Logins {
  /** The login of the database and username; null: none. */
  find(database: string, username: string): Promise<Login | null>;
}

export interface ClientLoginDeps {
  readonly logins: Logins;
  /** Registers a successful login. Throws CommandError when the connection limit is reached. */
  readonly admit: (login: Login) => void;
}

export class ClientLogin {
  readonly #deps: ClientLoginDeps;
  #conversation: Conversation | null = null;
  #failures = 0;

  constructor(deps: ClientLoginDeps) {
    this.#deps = deps;
  }

  /** The connection must be closed: its client only guesses passwords. */
  get isExhausted(): boolean {
    return this.#failures >= MAX_FAILURES;
  }

  /** Answers saslStart on that database. Throws CommandError. */
  async start(command: Document, database: string): Promise<Document> {
    this.#conversation = null;
    if (command.mechanism !== MECHANISM)
      throw new CommandError(334, `log in with ${MECHANISM}, not ${command.mechanism}`);
    const first = readClientFirst(bytesOf(command.payload));
    const login = first === null ? null : await this.#find(first, database);
    if (first === null || login === null) throw this.#failed();
    const scram = new ScramConversation(first, login.keys);
    const skipsEmpty = command.options?.skipEmptyExchange === true;
    this.#conversation = { scram, login, skipsEmpty, isProven: false };
    return said(scram.serverFirst, false);
  }

  /** Answers saslContinue. Throws CommandError. */
  async proceed(command: Document): Promise<Document> {
    const conversation = this.#conversation;
    if (conversation === null || command.conversationId !== CONVERSATION_ID)
      throw new CommandError(17, 'No SASL session state found');
    if (conversation.isProven) return this.#admit(conversation, '');
    const proof = conversation.scram.finish(bytesOf(command.payload));
    if (proof === null) throw this.#failed();
    conversation.isProven = true;
    return conversation.skipsEmpty ? this.#admit(conversation, proof) : said(proof, false);
  }

  async #find(first: ClientFirst, database: string): Promise<Login | null> {
    const login = await this.#deps.logins.find(database, first.username);
    return login?.database.username === first.username ? login : null;
  }

  async #admit({ login }: Conversation, proof: string): Promise<Document> {
    this.#conversation = null;
    const { database, username } = login.database;
    const now = await this.#deps.logins.find(database, username);
    // The password may have changed in the meantime.
    if (now === null || !now.keys.storedKey.equals(login.keys.storedKey)) throw this.#failed();
    this.#deps.admit(now);
    return said(proof, true);
  }

  #failed(): CommandError {
    this.#conversation = null;
    this.#failures++;
    return new CommandError(18, 'Authentication failed.');
  }
}

function bytesOf(payload: unknown): Uint8Array {
  if (payload instanceof Binary) return payload.value();
  throw new CommandError('BadValue', 'payload must be binary data');
}

function said(text: string, done: boolean): Document {
  return { conversationId: CONVERSATION_ID, done, payload: new Binary(Buffer.from(text)), ok: 1 };
}
