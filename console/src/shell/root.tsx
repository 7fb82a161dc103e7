/** What is there whatever the page: files dropped anywhere are uploaded, and the tray stays. */
import { Outlet } from '@tanstack/react-router';

export function Root() {
  return <Outlet />;
}
