/** Reads and writes MongoDB's wire messages. See README.md. */
export { scanCommand } from './command-scan.ts';
export { readMessages } from './message-reader.ts';
export * as wire from './wire-messages.ts';
