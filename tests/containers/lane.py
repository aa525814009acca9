"""What the steps share: the engine, the deployment of this tree, and how a step finds it running."""

from tests.containers import images
from tests.containers.deployment import Deployment, block, copy_of_tree
from tests.containers.engine import Engine


class Lane:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.deployment = Deployment(engine, engine.share / "rrule-scheduler")
        self._provided: list[str] | None = None
        self._copied = False

    def images(self) -> list[str]:
        """Makes the public images available, once in a run; which ones they are."""
        if self._provided is None:
            with self.engine.internet():
                self._provided = images.provide(self.engine)
        return self._provided

    def fresh_copy(self) -> Deployment:
        """This tree's files without an installation: no `.env`, no containers, no volumes."""
        self.images()
        self.deployment.down()
        copy_of_tree(self.deployment.folder)
        self._copied = True
        return self.deployment

    def running(self) -> Deployment:
        """The installation that the README's block makes, or that an earlier step of this run left."""
        self.images()
        if not self._copied:
            self.fresh_copy()
        if not (self.deployment.folder / ".env").exists():
            self.install()
        if not self.deployment.answers():
            self.deployment.compose("up", "--wait")
        return self.deployment

    def install(self) -> None:
        """The README's block, word for word; the build needs packages."""
        with self.engine.internet():
            self.deployment.shell(block("README.md", "docker compose up --build --wait"))

    def stand_in(self, folder: str, image: str) -> None:
        """Builds an image that no file of the repository names."""
        images.build(self.engine, folder, image)

    def begin_anew(self) -> None:
        """The next step finds nothing of the one that failed."""
        self.deployment.down()
        self._copied = False

    def state(self) -> str:
        """What the containers do, for somebody who reads a failure."""
        if not self.deployment.folder.exists():
            return ""
        return self.deployment.compose("ps", "-a", check=False) + self.deployment.compose(
            "logs", "--tail", "2", "worker", "api", "beat", check=False
        )
