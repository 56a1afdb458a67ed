"""Build step: the artefacts that lie beside the package go into the wheel as its data, without a copy in the tree."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# Folders of the repository, what they are called in the package, and the files that are shipped.
ARTEFACTS = (
    ("priors", "priors", ("*.npz",)),
    ("video", "footage", ("*.mp4", "*.toml", "*.background.jpg", "*.truth.npz")),
)
PACKAGE = "mocap2ctrl"


class BuildWithArtefacts(build_py):
    """Copies the artefacts beside the modules; an editable install reads them where they are."""

    def run(self) -> None:
        """Builds the modules, then copies the artefacts beside them."""
        super().run()
        if self.editable_mode:
            return
        for source, target in self._artefacts():
            self.mkpath(str(Path(target).parent))
            self.copy_file(source, target, preserve_mode=False)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """What the build writes, for the installer's record."""
        return [*super().get_outputs(include_bytecode), *(target for _, target in self._artefacts())]

    def _artefacts(self) -> list[tuple[str, str]]:
        if self.editable_mode:
            return []
        target = Path(self.build_lib) / PACKAGE
        return [
            (str(file), str(target / folder / file.name))
            for source, folder, patterns in ARTEFACTS
            for pattern in patterns
            for file in sorted(Path(source).glob(pattern))
        ]


setup(cmdclass={"build_py": BuildWithArtefacts})
