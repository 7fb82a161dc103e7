/** "Copy as command": the client command for the current page. */
import { CommandLineIcon } from '@heroicons/react/24/outline';
import { useRouterState } from '@tanstack/react-router';
import { text } from '../../texts/text.ts';
import { commandOfPage } from './client-commands.ts';
import { CopyIcon } from './copy.tsx';

export function CopyCommand({ command }: { command: string }) {
  return <CopyIcon value={command} label={text.shell.copyCommand(command)} icon={CommandLineIcon} />;
}

/** For the current page. */
export function CopyPageCommand() {
  const { pathname, search } = useRouterState({
    select: ({ resolvedLocation, location }) => resolvedLocation ?? location,
  });
  const { prefix } = search as { prefix?: unknown };
  const command = commandOfPage(pathname, typeof prefix === 'string' ? prefix : undefined);
  return command !== undefined && <CopyCommand command={command} />;
}
