/** Shown instead of a page that cannot be loaded. */
import { CloudIcon } from '@heroicons/react/24/outline';
import { Center, Stack } from '@mantine/core';
import { useRouter } from '@tanstack/react-router';
import { Refused } from '../parts/forms/warning.tsx';
import { Empty } from '../parts/page.tsx';
import { ButtonLink } from '../parts/tables/links.tsx';
import { text } from '../texts/text.ts';

/** Shown outside the shell, which has the main element of other pages. */
export function NotFound() {
  return (
    <main>
      <NoPage title={text.shell.notFound}>{text.shell.notFoundLead}</NoPage>
    </main>
  );
}

/** For pages that others can open. */
export function ClosedPage() {
  return <NoPage title={text.shell.closed}>{text.shell.closedLead}</NoPage>;
}

function NoPage({ title, children }: { title: string; children: string }) {
  return (
    <Center mih="60vh" p="md">
      <Empty
        icon={CloudIcon}
        title={title}
        order={1}
        action={<ButtonLink to="/">{text.shell.goHome}</ButtonLink>}
      >
        {children}
      </Empty>
    </Center>
  );
}

export function PageFailed({ error }: { error: unknown }) {
  const router = useRouter();
  return (
    <Center mih="60vh" p="md">
      <Stack maw={520}>
        <Refused error={error} onRetry={() => router.invalidate()} />
      </Stack>
    </Center>
  );
}
