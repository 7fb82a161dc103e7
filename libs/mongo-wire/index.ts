/** MongoDB's wire messages, read from a socket and written. README.md says more. */
export { scanCommand } from './command-scan.ts';
export { readMessages } from './message-reader.ts';
export * as wire from './wire-messages.ts';
